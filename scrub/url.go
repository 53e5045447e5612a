package scrub

import "strings"

// urlPassword finds the password in scheme://user:password@host, and a key in scheme://key@host.
func urlPassword(t *text, start, end int) (from, to int, found bool) {
	if start == 0 || !isWord(t.s[start-1]) {
		return 0, 0, false
	}
	part := t.s[end:min(t.token(end), end+4*judged)]
	authority := part
	if at := strings.IndexAny(part, "/?#"); at >= 0 {
		authority = part[:at]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 { // a password with a slash in it, or no password
		at = strings.LastIndexByte(part, '@')
		user, port, _ := strings.Cut(authority, ":")
		if at < 0 || len(authority) == len(user) || isPort(port) || strings.Contains(user, ".") {
			return 0, 0, false
		}
	}
	user, _, named := strings.Cut(part[:at], ":")
	if !named {
		return end, end + at, isRandom(part[:at], 12) || len(part[:at]) >= 16 && isMixed(part[:at])
	}
	return end + len(user) + 1, end + at, isURLPassword(part[len(user)+1 : at])
}

func isURLPassword(value string) bool {
	return value != "" && (mayBeReal(value) || noValues[strings.ToLower(value)] && value != "xxxxx")
}

// isPort reports whether a text is a port number.
func isPort(s string) bool { return len(s) <= 5 && strings.Trim(s, digits) == "" }

// login finds user:password@ before a host without a scheme, as in go-sql-driver, Oracle and Snowflake.
func login(t *text, start, end int) (from, to int, found bool) {
	if !isLoginHost(t.s[end:min(len(t.s), end+judged)]) {
		return 0, 0, false
	}
	begin := start
	for limit := max(0, start-judged); begin > limit && !blank(t.s[begin-1]) && !endsLogin(t.s, begin-1, start); {
		begin--
	}
	part := t.s[begin:start]
	if strings.Contains(part, "://") {
		return 0, 0, false
	}
	if thin := strings.LastIndex(part, "thin:"); thin >= 0 { // jdbc:oracle:thin:user/password@host
		begin += thin + len("thin:")
		part = t.s[begin:start]
	}
	at := strings.IndexAny(part, ":/")
	if at <= 0 || strings.Trim(part[:at], letters+digits+"_.-%$#") != "" || part[at] == '/' && strings.Count(part, "/") > 1 {
		return 0, 0, false
	}
	value := part[at+1:]
	return begin + at + 1, start, value != "" && !strings.HasPrefix(value, "//") && isURLPassword(value) && !isPort(value)
}

// endsLogin reports whether a sign before a login ends it: a quote, a bracket or an equals sign that is not
// inside the password.
func endsLogin(s string, at, end int) bool {
	switch s[at] {
	case '"', '\'', '`', '(', '[', '<', '{', '=', ',':
		return strings.IndexByte(s[at+1:end], ':') > 0 || strings.IndexByte(s[at+1:end], '/') > 0
	}
	return false
}

// isLoginHost reports whether the text behind an `@` is the host of a connection string: tcp(…), unix(…),
// /name, host:port/name.
func isLoginHost(s string) bool {
	for _, protocol := range []string{"tcp(", "tcp6(", "unix(", "udp(", "cloudsql(", "//"} {
		if strings.HasPrefix(s, protocol) {
			return true
		}
	}
	if strings.HasPrefix(s, "/") {
		return len(s) > 1 && isLetter(s[1]) || strings.HasPrefix(s, "/?")
	}
	i := 0
	for i < len(s) && (isDigit(s[i]) || isLetter(s[i]) || s[i] == '.' || s[i] == '-' || s[i] == '_') {
		i++
	}
	if i == 0 || i >= len(s) || s[i] != ':' || strings.HasPrefix(s, "sha") {
		return false
	}
	port := i + 1
	for port < len(s) && isDigit(s[port]) {
		port++
	}
	return port-i >= 4 && port-i <= 6 && !wordAt(s, port)
}

// Query parameters: secretParams are always secret, drawnParams only if their value was generated.
var (
	secretParams = []string{"sig", "signature", "x-amz-signature", "x-goog-signature", "x-amz-security-token", "x-oss-signature", "x-ms-signature", "hmac", "otp", "pass", "pwd", "passwd", "auth_token", "jwt", "assertion", "code_verifier", "session_state", "samlresponse", "ticket"}
	drawnParams  = []string{"key", "code", "auth", "session", "sid", "hash", "state", "nonce", "x-amz-credential", "policy", "k", "t", "s", "access", "credentials", "hdnts", "st", "sessionid", "device_code", "user_code"}
)

// queryWords returns the parameters with their signs in queries.
func queryWords(params []string) []string {
	var all []string
	for _, param := range params {
		for _, before := range []string{"?", "&", "u0026", "amp;", "#", "%26", "%3f"} {
			all = append(all, before+param+"=")
		}
	}
	return all
}

// queryParam finds the value of a parameter if isSecret accepts it.
func queryParam(isSecret func(value string) bool) func(t *text, start, end int) (from, to int, found bool) {
	return func(t *text, _, end int) (from, to int, found bool) {
		to = trimURL(t.s, end, t.until(paramStretch, end, endsParam))
		value := t.s[end:min(to, end+judged)]
		return end, to, mayBeReal(value) && isSecret(value)
	}
}

// isSigned reports whether a parameter that is always secret has a real value, not a word or a short number.
func isSigned(value string) bool {
	return len(value) >= 16 || len(value) >= 6 && hasDigit(value)
}

func isDrawn(value string) bool { return isRandom(value, 12) }

func endsParam(s string, at int) bool {
	switch s[at] {
	case '&', '#', ' ', '\n', '\t', '\r', '"', '\'', '`', '<', '>', ')', ']', '}', '|', '\\', ';', ',':
		return true
	}
	return false
}

// trimURL removes the sentence's punctuation behind a URL.
func trimURL(s string, start, end int) int {
	for end > start && strings.IndexByte(".,;:!?)]}>*", s[end-1]) >= 0 {
		end--
	}
	return end
}
