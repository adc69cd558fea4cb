// Serves a file system whose files never finish to close, starts a process that executes a program with
// such a file open, and prints its ID when it hangs there. For tests of what reads files in /proc.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int device;

static void reply(struct fuse_in_header *request, int error, void *data, size_t size)
{
	struct fuse_out_header head = {sizeof head + size, error, request->unique};
	struct iovec parts[] = {{&head, sizeof head}, {data, size}};
	writev(device, parts, 2);
}

int main(int count, char **arguments)
{
	char options[100], file[4096];
	device = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || mount("hang", arguments[1], "fuse", 0, options))
		return 1;
	int victim = fork();
	if (victim == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(device);
		snprintf(file, sizeof file, "%s/file", arguments[1]);
		if (open(file, O_RDONLY | O_CLOEXEC) < 0)
			_exit(2);
		execlp("sleep", "sleep", "1000", NULL);
	}
	static char buffer[1 << 20];
	struct fuse_in_header *request = (void *)buffer;
	while (read(device, buffer, sizeof buffer) > 0) {
		struct fuse_attr attr = {.ino = request->nodeid, .mode = S_IFREG | 0644, .nlink = 1};
		if (request->nodeid == FUSE_ROOT_ID)
			attr.mode = S_IFDIR | 0755;
		switch (request->opcode) {
		case FUSE_INIT: {
			struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
			reply(request, 0, &out, sizeof out);
			break;
		}
		case FUSE_LOOKUP: {
			struct fuse_entry_out out = {.nodeid = 2,
			                             .attr = {.ino = 2, .mode = S_IFREG | 0644, .nlink = 1}};
			reply(request, 0, &out, sizeof out);
			break;
		}
		case FUSE_GETATTR: {
			struct fuse_attr_out out = {.attr = attr};
			reply(request, 0, &out, sizeof out);
			break;
		}
		case FUSE_OPEN: {
			struct fuse_open_out out = {.fh = 1};
			reply(request, 0, &out, sizeof out);
			break;
		}
		case FUSE_FLUSH:
			printf("%d\n", victim);
			fflush(stdout);
			break;
		default:
			reply(request, -38, NULL, 0);
		}
	}
}
