"""The storing kernel: the smallest program that writes to a peer as NCCL's kernels do.

It is PTX, which every driver compiles for its own GPU (PTX ISA, version 6.0 and Volta on), so that it needs neither
NVRTC nor Triton. store(from, to, count): count words of 16 bytes, any grid.
"""

NAME = b"store"
WORD = 16
BLOCKS, THREADS = 128, 256

PTX = b"""
.version 6.0
.target sm_70
.address_size 64

.visible .entry store(.param .u64 from, .param .u64 to, .param .u64 count)
{
    .reg .pred %done;
    .reg .b32 %block, %threads, %thread, %blocks, %a, %b, %c, %d;
    .reg .b64 %source, %target, %left, %at, %step, %offset, %read, %write, %wide;

    ld.param.u64 %source, [from];
    ld.param.u64 %target, [to];
    ld.param.u64 %left, [count];
    cvta.to.global.u64 %source, %source;
    cvta.to.global.u64 %target, %target;

    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    mul.wide.u32 %at, %block, %threads;
    cvt.u64.u32 %wide, %thread;
    add.u64 %at, %at, %wide;
    mul.wide.u32 %step, %blocks, %threads;

NEXT:
    setp.ge.u64 %done, %at, %left;
    @%done bra END;
    shl.b64 %offset, %at, 4;
    add.u64 %read, %source, %offset;
    add.u64 %write, %target, %offset;
    ld.global.v4.u32 {%a, %b, %c, %d}, [%read];
    st.global.v4.u32 [%write], {%a, %b, %c, %d};
    add.u64 %at, %at, %step;
    bra NEXT;

END:
    membar.sys;
    ret;
}
"""
