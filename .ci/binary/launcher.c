/* The start of the one-file executable: unpack the program once, into a directory of the user, and become it.
 *
 * one_file.py compiles this and appends the program, a compressed tar. It defines: DIGEST, of the tar; PACKED, how many
 * bytes are appended; FILES and BYTES, which the tar has; SPACE, which they take on a disk.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#define PROGRAM "outreach-server"
#define BLOCK 512
#define OPEN_FILES 16

static long files_found;
static long long bytes_found;

__attribute__((format(printf, 1, 2))) static char *text(const char *format, ...) {
    char *made = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&made, format, values) < 0) abort();
    va_end(values);
    return made;
}

__attribute__((noreturn)) static void fail(const char *words) {
    fprintf(stderr, "Error: %s\n", words);
    exit(1);
}

static int delete_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    remove(path);
    return 0;
}

static void delete_tree(const char *path) { nftw(path, delete_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS); }

static int count_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)path, (void)place;
    if (type == FTW_F) files_found++, bytes_found += status->st_size;
    return 0;
}

/* Whether all files are there with their sizes: a power cut and what cleans /tmp up take some of them. */
static bool is_complete(const char *program) {
    files_found = bytes_found = 0;
    return nftw(program, count_one, OPEN_FILES, FTW_PHYS) == 0 && files_found == FILES && bytes_found == BYTES;
}

/* Delete what nobody runs: other versions, and what a killed start has left. */
static void delete_unused(const char *cache) {
    DIR *entries = opendir(cache);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        char *path = text("%s/%s", cache, entry->d_name);
        int held = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0) delete_tree(path);
        if (held >= 0) close(held);
        free(path);
    }
    if (entries != NULL) closedir(entries);
}

/* Read a part of the tar; false and EBADMSG where it is damaged. */
static bool take(gzFile archive, void *into, unsigned size) {
    if (gzread(archive, into, size) == (int)size) return true;
    errno = EBADMSG;
    return false;
}

static bool write_file(gzFile archive, int directory, const char *name, mode_t mode, long size) {
    static char buffer[128 * BLOCK];
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0) return false;
    bool good = true;
    for (long left = size; good && left > 0;) {
        unsigned part = left < (long)sizeof buffer ? (unsigned)left : sizeof buffer;
        good = take(archive, buffer, (part + BLOCK - 1) / BLOCK * BLOCK);
        for (unsigned done = 0; good && done < part;) {
            ssize_t written = write(file, buffer + done, part - done);
            good = written >= 0;
            done += (unsigned)written;
        }
        left -= part;
    }
    int problem = errno;
    if (close(file) != 0 && good) return false;
    errno = problem;
    return good;
}

/* Whether the rest of the tar is empty, and its checksum right. */
static bool ends_well(gzFile archive) {
    char rest[BLOCK];
    int size;
    while ((size = gzread(archive, rest, BLOCK)) > 0) continue;
    errno = EBADMSG;
    return size == 0;
}

/* Unpack into a directory; false and errno where that fails. */
static bool unpack(const char *into) {
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self < 0) fail("/proc/self/exe cannot be read. Mount /proc.");
    lseek(self, -(off_t)PACKED, SEEK_END);
    gzFile archive = gzdopen(self, "rb");
    int directory = mkdir(into, 0700) == 0 ? open(into, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool good = archive != NULL && directory >= 0;
    if (good && gzdirect(archive)) {
        errno = EBADMSG;
        good = false;
    }
    while (good) {
        char header[BLOCK], name[257];
        if (!(good = take(archive, header, BLOCK))) break;
        if (header[0] == '\0') {
            good = ends_well(archive);
            break;
        }
        snprintf(name, sizeof name, "%.155s%s%.100s", header + 345, header[345] ? "/" : "", header);
        mode_t mode = (mode_t)strtol(header + 100, NULL, 8);
        char type = header[156];
        header[257] = '\0';
        if (type == '5') good = mkdirat(directory, name, mode) == 0;
        else if (type == '2') good = symlinkat(header + 157, directory, name) == 0;
        else good = write_file(archive, directory, name, mode, strtol(header + 124, NULL, 8));
    }
    int problem = errno;
    if (directory >= 0) close(directory);
    if (archive != NULL) gzclose(archive);
    errno = problem;
    return good;
}

static double free_bytes(const struct statvfs *disk) { return (double)disk->f_bavail * (double)disk->f_frsize; }

static const char *no_space(const struct statvfs *disk) {
    return text("no space: %.1f MB and %.0f inodes are free", free_bytes(disk) / 1e6, (double)disk->f_favail);
}

/* Put the program into the cache, of which the lock is held; return what prevents that, or NULL. */
static const char *fill(const char *cache, int held, const char *program) {
    struct statvfs disk;
    char *left = text("%s/broken-%d", cache, (int)getpid());
    rename(program, left);
    delete_unused(cache);
    if (fstatvfs(held, &disk) != 0) return strerror(errno);
    /* Some disks, such as those of btrfs, have no limit of inodes, and tell 0. */
    if (free_bytes(&disk) < SPACE || (disk.f_files > 0 && disk.f_favail < 2 * FILES)) return no_space(&disk);
    char *unfinished = text("%s/unfinished", cache);
    /* On the disk first: after a power cut a file may have its size and not its content. */
    if (unpack(unfinished) && syncfs(held) == 0 && rename(unfinished, program) == 0) return NULL;
    int problem = errno;
    if (problem == ENOSPC) fstatvfs(held, &disk);
    delete_tree(unfinished);
    if (problem == EBADMSG) fail("this file is damaged or cut off. Copy it again.");
    return problem == ENOSPC ? no_space(&disk) : strerror(problem);
}

/* Become the program in this cache; return what prevents that. */
static const char *run_in(const char *cache, char **arguments) {
    int held = open(cache, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    struct statvfs disk;
    if (held < 0 || fstat(held, &status) != 0 || fstatvfs(held, &disk) != 0) return strerror(errno);
    if (status.st_uid != geteuid() || status.st_mode & 022) return "others can write there, or it is another user's";
    if (disk.f_flag & ST_NOEXEC) return "mounted with noexec, so that nothing can be executed there";
    char *program = text("%s/%s", cache, DIGEST);
    if (flock(held, LOCK_SH) != 0) return text("it cannot be locked: %s", strerror(errno));
    if (!is_complete(program)) {
        if (flock(held, LOCK_EX) != 0) return text("it cannot be locked: %s", strerror(errno));
        /* Another start may have been first. */
        const char *problem = is_complete(program) ? NULL : fill(cache, held, program);
        if (problem != NULL) return problem;
    }
    /* The lock stays with this process until it ends, so that no start of another version deletes the directory. */
    int running = open(program, O_RDONLY | O_DIRECTORY);
    if (running < 0 || flock(running, LOCK_SH) != 0) return strerror(errno);
    execv(text("%s/%s", program, PROGRAM), arguments);
    return text("it cannot be executed there: %s", strerror(errno));
}

/* Whether nobody else can replace what lies in a directory: it is this user's or root's, or is like /tmp. */
static bool is_safe(const char *directory) {
    struct stat status;
    return stat(directory, &status) == 0 &&
           (status.st_uid == geteuid() || status.st_uid == 0 || status.st_mode & S_ISVTX);
}

/* Try a directory in another one; note what prevents it. */
static void attempt(const char *base, const char *name, char **arguments, char **problems) {
    const char *cache = text("%s/%s", base, name);
    bool made = is_safe(base) && mkdir(cache, 0700) == 0;
    const char *problem = is_safe(base) ? run_in(cache, arguments) : "the directory above it is another user's, or missing";
    if (made) rmdir(cache);
    *problems = text("%s  %s: %s\n", *problems, cache, problem);
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] == '/' ? value : NULL;
}

int main(int count, char **arguments) {
    (void)count;
    char own[4096] = "", *problems = "";
    if (readlink("/proc/self/exe", own, sizeof own - 1) > 0) setenv("OUTREACH_ONE_FILE", own, 1);
    const char *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME"), *temporary = variable("TMPDIR");
    if (cache == NULL && home != NULL && is_safe(home)) cache = text("%s/.cache", home);
    if (cache != NULL) {
        mkdir(cache, 0700);
        attempt(cache, PROGRAM, arguments, &problems);
    }
    attempt(temporary ? temporary : "/tmp", text("%s-%u", PROGRAM, geteuid()), arguments, &problems);
    fail(text("at its first start this executable unpacks %.0f MB, once, and found no directory for that:\n%s"
              "Make room there, name another directory by the variable XDG_CACHE_HOME, or take the executable as a "
              "directory, which unpacks nothing.",
              SPACE / 1e6, problems));
}
