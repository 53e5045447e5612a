package scrub

import "strings"

// schemes are the common schemes of Authorization.
var schemes = []string{"bearer", "basic", "digest", "negotiate", "ntlm", "apikey", "api-key", "token", "hawk", "aws4-hmac-sha256", "hmac", "splunk", "genie-key", "sso-key", "key", "oauth"}

// headerValue returns the beginning of the value of a header whose name ends at a place: Name: value,
// "Name":"value", Name:[value].
func headerValue(s string, end int) (from int, ok bool) {
	at := skipBlanks(s, skipQuote(s, end))
	if at >= len(s) || s[at] != ':' && s[at] != '=' {
		return 0, false
	}
	at = skipBlanks(s, at+1)
	if at < len(s) && s[at] == '[' {
		at++
	}
	at = skipQuote(s, at)
	return at, at < len(s)
}

// authorization finds the value of an Authorization header, to the end of the line.
func authorization(t *text, _, end int) (from, to int, found bool) {
	from, ok := headerValue(t.s, end)
	if !ok {
		return 0, 0, false
	}
	to = t.line(from)
	value := t.s[from:min(to, from+judged)]
	if at := strings.IndexByte(value, ']'); at >= 0 {
		to, value = from+at, value[:at]
	}
	first, rest, more := strings.Cut(value, " ")
	if more && isOneOf(schemes, strings.ToLower(first)) {
		secret, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		return from, to, len(secret) >= 4 && mayBeReal(secret) && !proseWords[strings.ToLower(secret)] && (hasDigit(rest) || len(secret) >= 12)
	}
	return from, to, mayBeReal(first) && len(first) >= 6 && isMixed(first) && !isCode(first)
}

// bearer finds the secret behind a scheme, also without a header.
func bearer(t *text, start, end int) (from, to int, found bool) {
	if wordBefore(t.s, start) || end >= len(t.s) {
		return 0, 0, false
	}
	at := skipQuote(t.s, end)
	if at > end && at < len(t.s) && strings.IndexByte(":=,", t.s[at]) < 0 {
		return 0, 0, false
	}
	if at < len(t.s) && (at == end && t.s[at] == ' ' || t.s[at] == ':' || t.s[at] == '=') || strings.HasPrefix(t.s[at:], "%20") {
		at++
		at += len("20") * strings.Count(t.s[at-1:at], "%")
	}
	if at == end {
		return 0, 0, false
	}
	from = skipQuote(t.s, skipBlanks(t.s, at))
	if from >= len(t.s) {
		return 0, 0, false
	}
	to = t.base64(from)
	for to > from && t.s[to-1] == '.' {
		to--
	}
	value := t.s[from:min(to, from+judged)]
	return from, to, len(value) >= 8 && mayBeReal(value) && isMixed(value) && !isUUIDWord(value)
}

func isUUIDWord(value string) bool { return isVersionNumber(value) || isDate(value) }

// cookie finds the cookies of a Cookie or Set-Cookie header, to the end of the line.
func cookie(t *text, _, end int) (from, to int, found bool) {
	from, ok := headerValue(t.s, end)
	if !ok {
		return 0, 0, false
	}
	to = t.line(from)
	value := t.s[from:min(to, from+judged)]
	first, _, _ := strings.Cut(value, ";")
	key, secret, is := strings.Cut(first, "=")
	return from, to, is && !strings.Contains(key, " ") && len(secret) >= 3 && mayBeReal(secret) && !strings.HasPrefix(secret, "=")
}

// curlUser finds the password of curl -u user:password, and of commands with the same flag.
func curlUser(t *text, start, end int) (from, to int, found bool) {
	if start > 0 && !blank(t.s[start-1]) && !isQuote(t.s[start-1]) {
		return 0, 0, false
	}
	at := end
	for at < len(t.s) && at < end+4 && (t.s[at] == ' ' || t.s[at] == '=' || t.s[at] == ',' || isQuote(t.s[at])) {
		at++
	}
	if at == end && t.s[end-1] != ' ' && t.s[end-1] != '=' {
		return 0, 0, false
	}
	to = t.token(at)
	user, secret, is := strings.Cut(t.s[at:min(to, at+judged)], ":")
	if !is || len(secret) < 3 || !mayBeReal(user) && strings.HasPrefix(user, "$") || !mayBeReal(secret) {
		return 0, 0, false
	}
	return at, to, !strings.HasPrefix(secret, "//") && (!isPort(secret) || len(secret) > 4)
}

// sshpass finds the password in the command line of sshpass.
func sshpass(t *text, _, end int) (from, to int, found bool) {
	from = skipQuote(t.s, skipBlanks(t.s, end))
	to = t.token(from)
	return from, to, mayBeReal(t.s[from:min(to, from+judged)])
}

// identifiedBy finds the password of a user created by SQL: IDENTIFIED BY 'x'.
func identifiedBy(t *text, _, end int) (from, to int, found bool) {
	line := t.s[end:min(len(t.s), end+judged)]
	at := strings.Index(lowered(line), " by ")
	if at < 0 || strings.ContainsAny(line[:at], "\n;") {
		return 0, 0, false
	}
	a := assignment{name: name{kind: passwordName}, from: skipBlanks(t.s, end+at+len(" by "))}
	const word = "password "
	if len(t.s) >= a.from+len(word) && strings.EqualFold(t.s[a.from:a.from+len(word)], word) {
		a.from = skipBlanks(t.s, a.from+len(word))
	}
	a.readQuoted(t)
	if !a.quoted || a.to == a.from {
		return 0, 0, false
	}
	return a.from, a.to, mayBeReal(t.s[a.from:min(a.to, a.from+judged)])
}
