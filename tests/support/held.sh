# held.sh - read by scripts whose answers in $TMP/answers must stay those of a file.

as_they_were() { # NUMBER FILE
	[ -z "$UPDATE" ] || cp "$TMP/answers" "$2"
	if diff "$2" "$TMP/answers" > "$TMP/diff"; then
		echo "ok $1 - all $(grep -c . "$2") predictions and intervals are what they were"
		return 0
	fi
	echo "not ok $1 - $(grep -c '^>' "$TMP/diff") predictions or intervals are not what they were (when it is meant: make answers)"
	head -n 30 "$TMP/diff" | sed 's/^/#   /'
	return 1
}
