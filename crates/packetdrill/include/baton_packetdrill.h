/*
 * The interface of libbaton_packetdrill.so, for tools that run packet scripts against a TCP implementation.
 *
 * packetdrill_interface_init makes an instance and fills a table of functions. Each takes the table's userdata first
 * and is otherwise the C library's function of that name, errno included; those that the C library does not have are
 * described below. Several instances may exist.
 *
 * Time is virtual and the instance's own. It passes only by usleep (on any thread), by netdev_receive (until a packet
 * leaves), a microsecond at each gettimeofday, and while the thread that drives the script is in a call that blocks.
 * That thread is the one that called packetdrill_interface_init, or the last one that called netdev_send or
 * netdev_receive. A call that blocks on any other thread sleeps in the kernel until what the driving thread does lets
 * it go on; the clock then stands still until the woken thread has made its next call (to gettimeofday, as a rule).
 *
 * The descriptors that an instance gives are numbers of descriptors of the process, held for it: they are nobody else's
 * meanwhile, and closing one with the C library's close does no harm and leaves what it names as it is. Freeing the
 * instance gives back what is still held.
 *
 * Tools may ask the C library, and not the table, about a script's sockets. With the object preloaded (LD_PRELOAD),
 * getsockopt and sendfile to them are answered by their instance.
 *
 * Flags: "key=value,key=value", see the README. NULL or "" for a usual Linux host.
 */
#ifndef BATON_PACKETDRILL_H
#define BATON_PACKETDRILL_H

#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct packetdrill_interface {
    void *userdata;
    /* Releases the instance. No other function may run then or be called afterwards. */
    void (*free)(void *userdata);
    int (*socket)(void *userdata, int domain, int type, int protocol);
    int (*bind)(void *userdata, int fd, const struct sockaddr *addr, socklen_t len);
    int (*listen)(void *userdata, int fd, int backlog);
    int (*accept)(void *userdata, int fd, struct sockaddr *addr, socklen_t *len);
    int (*connect)(void *userdata, int fd, const struct sockaddr *addr, socklen_t len);
    ssize_t (*read)(void *userdata, int fd, void *buf, size_t count);
    ssize_t (*readv)(void *userdata, int fd, const struct iovec *iov, int count);
    ssize_t (*recv)(void *userdata, int fd, void *buf, size_t len, int flags);
    ssize_t (*recvfrom)(void *userdata, int fd, void *buf, size_t len, int flags,
                        struct sockaddr *addr, socklen_t *addr_len);
    ssize_t (*recvmsg)(void *userdata, int fd, struct msghdr *msg, int flags);
    ssize_t (*write)(void *userdata, int fd, const void *buf, size_t count);
    ssize_t (*writev)(void *userdata, int fd, const struct iovec *iov, int count);
    ssize_t (*send)(void *userdata, int fd, const void *buf, size_t len, int flags);
    ssize_t (*sendto)(void *userdata, int fd, const void *buf, size_t len, int flags,
                      const struct sockaddr *addr, socklen_t addr_len);
    ssize_t (*sendmsg)(void *userdata, int fd, const struct msghdr *msg, int flags);
    int (*fcntl)(void *userdata, int fd, int command, ...);
    int (*ioctl)(void *userdata, int fd, unsigned long request, ...);
    int (*close)(void *userdata, int fd);
    int (*shutdown)(void *userdata, int fd, int how);
    int (*getsockopt)(void *userdata, int fd, int level, int name, void *value, socklen_t *len);
    int (*setsockopt)(void *userdata, int fd, int level, int name, const void *value,
                      socklen_t len);
    int (*poll)(void *userdata, struct pollfd *fds, nfds_t count, int timeout_ms);

    /* A raw IPv4 or IPv6 packet arrives at the instance. 0, or -1 when it is no such packet. Damaged packets are
     * dropped without a word, as an interface drops them. */
    int (*netdev_send)(void *userdata, const void *packet, size_t count);

    /* The next raw packet that leaves: its bytes, their number, and when it left (microseconds on the clock of
     * gettimeofday). *count says how much room there is; a longer super-segment is cut up. An empty packet when nothing
     * would leave however long one waited. */
    int (*netdev_receive)(void *userdata, void *packet, size_t *count, long long *time_usecs);

    int (*usleep)(void *userdata, useconds_t usec);
    int (*gettimeofday)(void *userdata, struct timeval *time, void *zone);
    int (*epoll_create)(void *userdata, int size);
    int (*epoll_ctl)(void *userdata, int epoll, int operation, int fd, struct epoll_event *event);
    int (*epoll_wait)(void *userdata, int epoll, struct epoll_event *events, int most,
                      int timeout_ms);
    int (*pipe)(void *userdata, int fds[2]);
    ssize_t (*splice)(void *userdata, int fd_in, loff_t *off_in, int fd_out, loff_t *off_out,
                      size_t len, unsigned int flags);
};

/* 0, or -1 after a message on standard error that names the flag that is wrong. The table is whole in either case; in
 * the latter each of its functions fails with ENODEV. */
int packetdrill_interface_init(const char *flags, struct packetdrill_interface *out);

#ifdef __cplusplus
}
#endif

#endif
