/*
 * The interface of libbaton_packetdrill.so, for tools that run packet scripts against a TCP implementation.
 *
 * packetdrill_interface_init creates an instance and fills a table of functions. Each takes the table's userdata first
 * and otherwise behaves like the C library's function of that name, and sets errno. Functions that the C library does
 * not have are described below. Several instances may exist.
 *
 * Time is virtual, and each instance has its own. It passes only during usleep (on any thread) and netdev_receive (until
 * a packet leaves), by a microsecond at each gettimeofday, and while the thread that drives the script is in a call that
 * blocks. That thread is the one that called packetdrill_interface_init, or the last one that called netdev_send or
 * netdev_receive. A call that blocks on any other thread sleeps in the kernel until an action of the driving thread
 * wakes it. The clock then stops until the woken thread has made its next call (usually to gettimeofday).
 *
 * The descriptors that an instance returns are reserved numbers of the process: no other file has the same number, and
 * closing one with the C library's close does no harm and has no effect on the socket or other object that it names.
 * Freeing the instance releases the remaining descriptors.
 *
 * Tools may call the C library, and not the table, for a script's sockets. With the object preloaded (LD_PRELOAD), the
 * instance answers getsockopt and sendfile for its sockets.
 *
 * Flags: "key=value,key=value", see docs/src/reference/packet-scripts.md. NULL or "" stands for a typical Linux host.
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

    /* Injects a raw IPv4 or IPv6 packet. Returns 0, or -1 if it is not such a packet. Damaged packets are dropped
     * silently, as by an interface. */
    int (*netdev_send)(void *userdata, const void *packet, size_t count);

    /* Returns the next raw packet that leaves: its bytes, their number, and when it left (microseconds on the clock of
     * gettimeofday). *count is the size of the buffer; a longer super-segment is split. Returns an empty packet if no
     * packet would leave within hours. */
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

/* Returns 0. If a flag is invalid, prints a message about it on standard error and returns -1; the table is filled even
 * then, with functions that fail with ENODEV. */
int packetdrill_interface_init(const char *flags, struct packetdrill_interface *out);

#ifdef __cplusplus
}
#endif

#endif
