# stubs.awk - rows for stubs.c from stubs.txt: awk -v library=cublas -f stubs.awk stubs.txt
function rows(name,	open, close_, part, n, i) {
	if (!match(name, /\{[^}]*\}/)) {
		print "STUB_" answer "(" name arguments ")"
		return
	}
	open = substr(name, 1, RSTART - 1)
	close_ = substr(name, RSTART + RLENGTH)
	n = split(substr(name, RSTART + 1, RLENGTH - 2), part, ",")
	for (i = 1; i <= n; i++) rows(open part[i] close_)
}
/^#/ { next }
/^[^\t]/ {
	here = $1 == library; answer = toupper($2); arguments = ""
	for (i = 3; i <= NF; i++) arguments = arguments ", " $i
	next
}
here { for (i = 1; i <= NF; i++) rows($i) }
