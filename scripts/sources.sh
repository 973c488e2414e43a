# sources.sh - sourced: the C files of the tree, also where it was unpacked without its git folder.
sources() {
	git ls-files -co --exclude-standard '*.c' '*.h' 2> /dev/null ||
		find . -name 'build*' -type d -prune -o -name '*.[ch]' -print | sed 's|^\./||'
}
