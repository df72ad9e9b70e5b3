import type Docker from 'dockerode'
import { z } from 'zod'
import { ask } from './daemon.ts'

/**
 * The address families that a program of a box may open a socket of. Every other family is refused like a call that is not listed: AF_VSOCK
 * ignores network namespaces and reaches the machine below, AF_ALG and AF_PACKET are large and of no use here.
 */
export const socketFamilies = { AF_UNIX: 1, AF_INET: 2, AF_INET6: 10, AF_NETLINK: 16 } as const

/** Flags of `clone` that make namespaces, but CLONE_NEWTIME, which shares its bits with the signal. */
const namespaceFlags = 0x7e02_0000

/** Personalities of 64-bit Linux: PER_LINUX, PER_LINUX32, both with UNAME26, and the question which one it is. */
const personalities = [0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff]

/**
 * What programs of a box may ask of the kernel, by name: calls of 64-bit Linux that need no privilege, as Docker's own default profile (moby
 * 28, `profiles/seccomp`) has them. Not among them, though it was in older ones: `io_uring_*`, which opens sockets past `socket`, and
 * `socketcall`, which hides the family. A name that the machine's libseccomp does not know is passed over by runc.
 */
const calls = `
  accept accept4 access adjtimex alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_adjtime clock_getres clock_gettime
  clock_nanosleep close close_range connect creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait
  epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fanotify_mark
  fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync
  ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu getcwd getdents getdents64
  getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit
  getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1
  inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioctl ioprio_get ioprio_set kill landlock_add_rule
  landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listmount listxattr listxattrat llistxattr lremovexattr lseek
  lsetxattr lstat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap
  modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock
  munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free
  pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease pselect6 pwrite64 pwritev pwritev2 read readahead readlink
  readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr removexattrat rename renameat renameat2 restart_syscall
  riscv_flush_icache rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
  rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop
  sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority
  setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack
  signalfd signalfd4 splice stat statfs statmount statx symlink symlinkat sync sync_file_range sync_file_range2 syncfs sysinfo tee tgkill time
  timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask
  uname unlink unlinkat uretprobe utime utimensat utimes vfork vmsplice wait4 waitid write writev
`

type Compare = 'SCMP_CMP_EQ' | 'SCMP_CMP_MASKED_EQ'

/** `LinuxSeccomp.syscalls` of the runtime specification, with the conditions that a Docker daemon resolves. */
interface SeccompRule {
  readonly names: readonly string[]
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO'
  readonly errnoRet?: number
  readonly args?: readonly { readonly index: number; readonly value: number; readonly op: Compare }[]
  readonly includes?: { readonly caps?: readonly string[]; readonly minKernel?: string }
  readonly excludes?: { readonly caps?: readonly string[] }
}

const allow = (names: string, more: Omit<SeccompRule, 'names' | 'action'> = {}): SeccompRule => ({
  names: names.trim().split(/\s+/),
  action: 'SCMP_ACT_ALLOW',
  ...more,
})

const whereFirst = (name: string, values: readonly number[]): readonly SeccompRule[] =>
  values.map((value) => allow(name, { args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }] }))

const withCapability = (capability: string, names: string): SeccompRule =>
  allow(names, { includes: { caps: [capability] } })

/**
 * The seccomp profile of boxes and relays. Each architecture is alone: a call of ia32 or x32 kills the program that makes it.
 */
export const boxProfile = {
  defaultAction: 'SCMP_ACT_ERRNO',
  defaultErrnoRet: 1,
  archMap: ['X86_64', 'AARCH64', 'RISCV64'].map((name) => ({
    architecture: `SCMP_ARCH_${name}`,
    subArchitectures: [],
  })),
  syscalls: [
    allow(calls),
    ...['socket', 'socketpair'].flatMap((name) => whereFirst(name, Object.values(socketFamilies))),
    ...whereFirst('personality', personalities),
    // Before 4.8 a traced program leaves its filter.
    allow('ptrace process_vm_readv process_vm_writev', { includes: { minKernel: '4.8' } }),
    allow('clone', {
      args: [{ index: 0, value: namespaceFlags, op: 'SCMP_CMP_MASKED_EQ' }],
      excludes: { caps: ['CAP_SYS_ADMIN'] },
    }),
    // Its flags are in memory, where no filter reads them; a C library that hears ENOSYS uses clone.
    { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: 38, excludes: { caps: ['CAP_SYS_ADMIN'] } },
    // On overlayfs it leaves no trace on the file that it reads; programs that hear ENOSYS read and write.
    { names: ['copy_file_range'], action: 'SCMP_ACT_ERRNO', errnoRet: 38 },
    withCapability('CAP_SYS_ADMIN', 'bpf clone clone3'),
    withCapability('CAP_SYS_CHROOT', 'chroot'),
    withCapability('CAP_SYS_NICE', 'get_mempolicy mbind set_mempolicy'),
  ] satisfies readonly SeccompRule[],
}

/** `GET /info` (Docker Engine API 1.41). */
const infoShape = z.looseObject({ SecurityOptions: z.array(z.string()).nullish() })

/** The options of a container that ask the daemon for {@link boxProfile}; none where the daemon has no seccomp (`paddock doctor` warns of it). */
export async function seccompOptions(docker: Docker): Promise<readonly string[]> {
  const info = infoShape.parse(await ask('tell what it is', docker.info(), 'SANDBOX_UNAVAILABLE'))
  const isThere = info.SecurityOptions?.some((option) => option.startsWith('name=seccomp')) === true
  return isThere ? [`seccomp=${JSON.stringify(boxProfile)}`] : []
}
