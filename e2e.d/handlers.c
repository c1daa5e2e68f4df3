/* Echoes received data in one thread with poll(2). Signals interrupt it twice per millisecond, often in malloc(3). The handlers fork, write, and
 * check a connection, as handlers may wherever they interrupt a program. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, ROOM = 1 << 20, FIRST = 2, RINGS_PER_FORK = 256, TIMES = 100 };

static struct pollfd fds[MOST];
static struct { char *data; size_t from, to; } held[MOST];
static int count = FIRST, bell[2];
static volatile int last = -1, allocates;
static unsigned rings;

static void ring(int signal) {
    int before = errno;
    char bytes[4096] = {0};
    (void)signal;
    (void)!write(bell[1], bytes, 1);
    if (last >= 0)
        recv(last, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    /* The preloaded library has a thread, and the C library cannot fork a process with two threads within malloc. */
    if (++rings % RINGS_PER_FORK == 0 && !allocates && fork() == 0)
        _exit(0);
    errno = before;
}

static void reap(int signal) {
    int before = errno;
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = before;
}

/* Replaces a buffer by another; with 0 bytes, only frees it. */
__attribute__((noinline)) static char *replace(char *old, size_t bytes) {
    char *new = NULL;
    allocates = 1;
    free(old);
    if (bytes > 0 && !(new = malloc(bytes)))
        exit(1);
    allocates = 0;
    return new;
}

static void take(void) {
    int fd = accept4(fds[1].fd, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (count == MOST)
        exit(1);
    memset(&held[count], 0, sizeof held[count]);
    held[count].data = replace(NULL, ROOM);
    fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    last = fd;
}

/* Returns false when the connection has ended. */
static int serve(int at) {
    if (fds[at].revents & ~POLLOUT) {
        ssize_t got = recv(fds[at].fd, held[at].data + held[at].to, ROOM - held[at].to, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return 0;
        held[at].to += got > 0 ? got : 0;
    }
    ssize_t sent = send(fds[at].fd, held[at].data + held[at].from, held[at].to - held[at].from, MSG_NOSIGNAL);
    held[at].from += sent > 0 ? sent : 0;
    if (held[at].from == held[at].to)
        held[at].from = held[at].to = 0;
    fds[at].events = (held[at].to < ROOM ? POLLIN : 0) | (held[at].to ? POLLOUT : 0);
    return 1;
}

int main(int arguments, char **argument) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(arguments > 1 ? atoi(argument[1]) : 0)};
    struct itimerval often = {{0, 500}, {0, 500}};
    struct sigaction reaps = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (pipe(bell) || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 64))
        return 1;
    fds[0] = (struct pollfd){.fd = bell[0], .events = POLLIN};
    fds[1] = (struct pollfd){.fd = listener, .events = POLLIN};
    sigaction(SIGCHLD, &reaps, NULL);
    signal(SIGALRM, ring);
    setitimer(ITIMER_REAL, &often, NULL);
    for (;;) {
        char bytes[256];
        if (poll(fds, count, -1) < 0)
            continue;
        if (fds[0].revents && read(bell[0], bytes, sizeof bytes) < 0)
            continue;
        if (fds[1].revents)
            take();
        for (int i = 0; i < TIMES; i++)
            replace(replace(NULL, ROOM), 0);
        for (int i = FIRST; i < count; i++) {
            if (!fds[i].revents || serve(i))
                continue;
            if (last == fds[i].fd)
                last = -1;
            close(fds[i].fd);
            replace(held[i].data, 0);
            count--;
            fds[i] = fds[count];
            held[i--] = held[count];
        }
    }
}
