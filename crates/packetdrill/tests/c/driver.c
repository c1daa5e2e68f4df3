/*
 * Plays a short dialogue through the C interface. The only argument is the path of the object. Returns 0, or prints
 * an error and returns 1.
 */
#define _GNU_SOURCE
#include "baton_packetdrill.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#define REQUIRE(condition)                                                                   \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno);        \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

struct packet {
    struct iphdr ip;
    struct tcphdr tcp;
    unsigned char rest[2048];
};

static struct packetdrill_interface baton;
static void *data;

static unsigned sum(const void *bytes, size_t len, unsigned start) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++)
        start += i % 2 ? at[i] : at[i] << 8;
    return start;
}

static unsigned short fold(unsigned value) {
    while (value >> 16)
        value = (value & 0xffff) + (value >> 16);
    return htons(~value & 0xffff);
}

/* Injects a packet from the peer without options and with `len` times the letter x. */
static void inject(unsigned seq, unsigned ack, const char *flags, size_t len) {
    struct packet packet;
    memset(&packet, 0, sizeof packet);
    size_t total = sizeof packet.ip + sizeof packet.tcp + len;
    packet.ip.version = 4;
    packet.ip.ihl = 5;
    packet.ip.tot_len = htons(total);
    packet.ip.ttl = 64;
    packet.ip.protocol = IPPROTO_TCP;
    packet.ip.saddr = inet_addr("192.0.2.1");
    packet.ip.daddr = inet_addr("192.168.0.1");
    packet.ip.check = fold(sum(&packet.ip, sizeof packet.ip, 0));
    packet.tcp.source = htons(50000);
    packet.tcp.dest = htons(8080);
    packet.tcp.seq = htonl(seq);
    packet.tcp.ack_seq = htonl(ack);
    packet.tcp.doff = 5;
    packet.tcp.syn = strchr(flags, 'S') != NULL;
    packet.tcp.ack = strchr(flags, '.') != NULL;
    packet.tcp.fin = strchr(flags, 'F') != NULL;
    packet.tcp.window = htons(30000);
    memset(packet.rest, 'x', len);
    unsigned pseudo = sum(&packet.ip.saddr, 8, IPPROTO_TCP + sizeof packet.tcp + len);
    packet.tcp.check = fold(sum(&packet.tcp, sizeof packet.tcp + len, pseudo));
    REQUIRE(baton.netdev_send(data, &packet, total) == 0);
}

/* Receives the next packet to the peer and returns the time at which it was sent. */
static long long receive(struct packet *packet) {
    size_t len = sizeof *packet;
    long long left_us = 0;
    memset(packet, 0, sizeof *packet);
    REQUIRE(baton.netdev_receive(data, packet, &len, &left_us) == 0);
    REQUIRE(len == ntohs(packet->ip.tot_len));
    return left_us;
}

static long long now_us(void) {
    struct timeval time;
    REQUIRE(baton.gettimeofday(data, &time, NULL) == 0);
    return time.tv_sec * 1000000LL + time.tv_usec;
}

static long long read_at_us;

static void *blocked_reader(void *fd) {
    char bytes[100];
    REQUIRE(baton.read(data, *(int *)fd, bytes, sizeof bytes) == 10);
    read_at_us = now_us();
    REQUIRE(memcmp(bytes, "xxxxxxxxxx", 10) == 0);
    return NULL;
}

static int serve(unsigned *iss) {
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(8080)};
    struct packet packet;
    int listener = baton.socket(data, AF_INET, SOCK_STREAM, 0);
    REQUIRE(listener > STDERR_FILENO);
    REQUIRE(baton.bind(data, listener, (struct sockaddr *)&addr, sizeof addr) == 0);
    REQUIRE(baton.listen(data, listener, 1) == 0);
    inject(1000, 0, "S", 0);
    receive(&packet);
    REQUIRE(packet.tcp.syn && packet.tcp.ack && ntohl(packet.tcp.ack_seq) == 1001);
    *iss = ntohl(packet.tcp.seq);
    REQUIRE(baton.usleep(data, 10000) == 0);
    inject(1001, *iss + 1, ".", 0);
    socklen_t len = sizeof addr;
    int fd = baton.accept(data, listener, (struct sockaddr *)&addr, &len);
    REQUIRE(fd > STDERR_FILENO && fd != listener && len == sizeof addr && ntohs(addr.sin_port) == 50000);
    return fd;
}

int main(int count, char **args) {
    REQUIRE(count == 2);
    void *object = dlopen(args[1], RTLD_NOW);
    if (!object) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(const char *, struct packetdrill_interface *) =
        (int (*)(const char *, struct packetdrill_interface *))dlsym(
            object, "packetdrill_interface_init");
    REQUIRE(init);
    REQUIRE(init("no such flag", &baton) == -1);
    REQUIRE(init(NULL, &baton) == 0);
    data = baton.userdata;

    unsigned iss;
    struct packet packet;
    int fd = serve(&iss);

    /* A blocked call wakes at the moment at which data arrives. */
    pthread_t reader;
    REQUIRE(pthread_create(&reader, NULL, blocked_reader, &fd) == 0);
    usleep(20000);
    REQUIRE(baton.usleep(data, 50000) == 0);
    long long before_us = now_us();
    inject(1001, iss + 1, ".", 10);
    REQUIRE(baton.usleep(data, 1000000) == 0);
    REQUIRE(pthread_join(reader, NULL) == 0);
    REQUIRE(read_at_us - before_us < 1000);
    receive(&packet);
    REQUIRE(ntohl(packet.tcp.ack_seq) == 1011);

    /* Data is sent at once, and again after the retransmission timeout. */
    before_us = now_us();
    REQUIRE(baton.write(data, fd, "hello", 5) == 5);
    long long sent_us = receive(&packet);
    REQUIRE(sent_us - before_us < 1000 && packet.tcp.psh);
    REQUIRE(memcmp((char *)&packet.tcp + packet.tcp.doff * 4, "hello", 5) == 0);
    long long again_us = receive(&packet);
    REQUIRE(again_us - sent_us > 150000 && again_us - sent_us < 1100000);
    REQUIRE(ntohl(packet.tcp.seq) == iss + 1);

    /* Variadic calls, options and their errors. */
    int waiting = 0;
    REQUIRE(baton.ioctl(data, fd, TIOCOUTQ, &waiting) == 0 && waiting == 5);
    REQUIRE(baton.fcntl(data, fd, F_SETFL, O_NONBLOCK) == 0);
    REQUIRE(baton.fcntl(data, fd, F_GETFL) == (O_RDWR | O_NONBLOCK));
    char byte;
    REQUIRE(baton.read(data, fd, &byte, 1) == -1 && errno == EAGAIN);
    REQUIRE(baton.read(data, STDIN_FILENO, &byte, 1) == -1 && errno == EBADF);
    REQUIRE(baton.write(data, fd, NULL, 5) == -1 && errno == EFAULT);
    struct tcp_info info;
    socklen_t len = sizeof info;
    REQUIRE(baton.getsockopt(data, fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
    REQUIRE(len == sizeof info && info.tcpi_state == TCP_ESTABLISHED && info.tcpi_unacked == 1);

    /* The preloaded object replaces the C library's getsockopt for its own sockets. The kernel answers for others. */
    struct tcp_info same;
    REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &same, &len) == 0);
    REQUIRE(len == sizeof same && same.tcpi_state == info.tcpi_state && same.tcpi_unacked == 1);
    REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_INFO, NULL, &len) == -1 && errno == EFAULT);
    int other = socket(AF_INET, SOCK_DGRAM, 0), type = 0;
    len = sizeof type;
    REQUIRE(getsockopt(other, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM);
    REQUIRE(close(other) == 0);
    REQUIRE(getsockopt(other, SOL_SOCKET, SO_TYPE, &type, &len) == -1 && errno == EBADF);

    /* The same holds for sendfile, which is not in the table. */
    FILE *file = tmpfile();
    off_t from = 3;
    REQUIRE(file && fwrite("sent by file", 1, 12, file) == 12 && fflush(file) == 0);
    REQUIRE(sendfile(fd, fileno(file), &from, 100) == 9 && from == 12);
    REQUIRE(sendfile(fd, fileno(file), &from, 100) == 0 && from == 12);
    REQUIRE(lseek(fileno(file), 0, SEEK_SET) == 0);
    REQUIRE(sendfile(fd, fileno(file), NULL, 4) == 4 && lseek(fileno(file), 0, SEEK_CUR) == 4);
    REQUIRE(baton.ioctl(data, fd, TIOCOUTQ, &waiting) == 0 && waiting == 5 + 9 + 4);
    REQUIRE(sendfile(-1, fileno(file), NULL, 1) == -1 && errno == EBADF);
    fclose(file);
    inject(1011, iss + 6, ".", 0);
    receive(&packet);
    REQUIRE(memcmp((char *)&packet.tcp + packet.tcp.doff * 4, "t by filesent", 13) == 0);

    /* The peer closes the connection first. */
    inject(1011, iss + 19, "F.", 0);
    receive(&packet);
    REQUIRE(ntohl(packet.tcp.ack_seq) == 1012 && !packet.tcp.fin);
    REQUIRE(baton.read(data, fd, &byte, 1) == 0);
    REQUIRE(baton.close(data, fd) == 0);
    receive(&packet);
    REQUIRE(packet.tcp.fin);
    inject(1012, iss + 20, ".", 0);

    /* No packet will be sent any more, and waiting for one takes no virtual time. */
    size_t room = sizeof packet;
    long long never;
    before_us = now_us();
    REQUIRE(baton.netdev_receive(data, &packet, &room, &never) == 0 && room == 0);
    REQUIRE(never - before_us < 1000);
    REQUIRE(now_us() - before_us < 1000);
    baton.free(data);
    return 0;
}
