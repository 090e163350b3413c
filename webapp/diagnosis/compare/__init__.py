"""Before beside after: whether two measurements can be compared, and what they say."""
