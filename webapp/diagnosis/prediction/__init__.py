"""What a change can gain: the arithmetic of a decode step, and the figures that a healthy machine reaches."""
