/* SPDX-License-Identifier: Apache-2.0 */
/* thrown.cc - thrown [-c] N: N allocations and N / 2 frees through a stand-in libc10, then an exception
 * that nobody catches. -c: in a forked child. Compiled by ends.sh. */
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace c10 {
void *alloc_cpu(size_t n);
void free_cpu(void *p);
}

int main(int argc, char **argv)
{
	bool child = argc > 2 && !std::strcmp(argv[1], "-c");
	long n = std::atol(argv[argc - 1]);
	std::vector<void *> p;
	int status = 0;
	pid_t pid;

	if (child) {
		for (int i = 0; i < 10; i++)
			c10::alloc_cpu(64);
		pid = fork();
		if (pid) {
			waitpid(pid, &status, 0);
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		}
	}
	for (long i = 0; i < n; i++)
		p.push_back(c10::alloc_cpu(64));
	for (long i = 0; i < n; i += 2)
		c10::free_cpu(p[i]);
	throw std::runtime_error("not caught");
}
