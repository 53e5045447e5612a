package scrub

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// email finds the address around an `@`. The user git of git's own addresses is nobody's.
func email(t *text, start, end int) (from, to int, found bool) {
	const longestUser, longestHost = 64, 255
	for from = start; from > 0 && start-from < longestUser; {
		c, width := utf8.DecodeLastRuneInString(t.s[:from])
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) && (c >= utf8.RuneSelf || strings.IndexByte("._%+'-", byte(c)) < 0) {
			break
		}
		from -= width
	}
	for from < start && (!wordBefore(t.s, from+1) && t.s[from] < utf8.RuneSelf && isLetter(t.s[from]) && from > 0 && t.s[from-1] == '\\' || t.s[from] == '\'') {
		from++ // \n or a quote before it
	}
	to = hostEnd(t.s, end, min(len(t.s), end+longestHost))
	if from == start || to == end || t.s[from:start] == "git" {
		return 0, 0, false
	}
	host := t.s[end:to]
	top := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	return from, to, !noDomains[top]
}

// noDomains end the names of files and of systemd units.
var noDomains = wordSet(`service socket timer slice scope mount target path device swap automount png jpg jpeg gif svg webp js ts tsx jsx css go java txt
	json yaml yml toml html xml conf cfg log route`)

// hostEnd returns the end of a host name whose last part is only letters, or start if there is none.
func hostEnd(s string, start, limit int) int {
	best, label, onlyLetters, dots := start, 0, true, 0
	for i := start; i <= limit; {
		c, width := utf8.DecodeRuneInString(s[i:limit])
		if i < limit && (unicode.IsLetter(c) || unicode.IsNumber(c) || c == '-') && c != utf8.RuneError {
			onlyLetters = onlyLetters && unicode.IsLetter(c)
			label++
			i += width
			continue
		}
		if label == 0 {
			break
		}
		if dots > 0 && onlyLetters && label >= 2 && label <= 24 {
			best = i
		}
		if c != '.' || i >= limit {
			break
		}
		dots, label, onlyLetters = dots+1, 0, true
		i++
	}
	return best
}

// homePath finds the user's name in /home/name and /Users/name. A number is no name, and URLs have such paths
// too.
func homePath(t *text, start, end int) (from, to int, found bool) {
	if word := t.s[start:end]; word != "/home/" && word != "/Users/" || isWebPath(t.s, start) {
		return 0, 0, false
	}
	to = end
	for to < len(t.s) && to-end < 64 && !blank(t.s[to]) && strings.IndexByte(`/\:;,"'<>|*?()[]{}$`+"`", t.s[to]) < 0 {
		to++
	}
	return end, to, isUserName(t.s[end:to])
}

// isWebPath reports whether a path belongs to a URL or to an HTTP request.
func isWebPath(s string, at int) bool {
	begin := at
	for begin > 0 && at-begin < 2*longestName && !blank(s[begin-1]) && !isQuote(s[begin-1]) {
		begin--
	}
	if strings.Contains(s[begin:at], "http://") || strings.Contains(s[begin:at], "https://") {
		return true
	}
	if begin != at {
		return false
	}
	for _, method := range []string{"GET ", "POST ", "PUT ", "PATCH ", "DELETE ", "HEAD ", "OPTIONS "} {
		if strings.HasSuffix(strings.TrimRight(s[:at], `"'`), method) {
			return true
		}
	}
	return false
}

// windowsHomePath finds the user's name in C:\Users\name, which may contain blanks.
func windowsHomePath(t *text, _, end int) (from, to int, found bool) {
	from = end
	for from < len(t.s) && from < end+4 && t.s[from] == '\\' {
		from++
	}
	for to = from; to < len(t.s) && to-from < 64 && strings.IndexByte("\\/:;,\"'<>|*?\r\n", t.s[to]) < 0; {
		to++
	}
	if to == len(t.s) || t.s[to] != '\\' && t.s[to] != '/' { // no folder follows: the name ends at a blank
		if at := strings.IndexByte(t.s[from:to], ' '); at >= 0 {
			to = from + at
		}
	}
	return from, to, isUserName(t.s[from:to])
}

// isUserName leaves out names of no person.
func isUserName(name string) bool {
	return name != "" && strings.Trim(name, digits) != "" && !noUsers[strings.ToLower(name)] && mayBeReal(name)
}

var noUsers = wordSet("shared public default all user username you runner linuxbrew me id .. . index index.html dashboard page settings about login")

// namedSSN finds nine digits behind a word for them.
func namedSSN(t *text, _, end int) (from, to int, found bool) {
	const near = 20
	for from = end; from < len(t.s) && from-end < near && !isDigit(t.s[from]) && t.s[from] != '\n'; {
		from++
	}
	for to = from; to < len(t.s) && to-from < 10 && isDigit(t.s[to]); {
		to++
	}
	return from, to, to-from == 9
}
