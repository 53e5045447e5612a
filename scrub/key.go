package scrub

import "strings"

// jsonWebToken finds eyJ… with one part or more behind it.
func jsonWebToken(t *text, start, _ int) (from, to int, found bool) {
	if wordBefore(t.s, start) || !strings.HasPrefix(t.s[start:], "eyJ") {
		return 0, 0, false
	}
	to = t.dotted(start)
	head := strings.IndexByte(t.s[start:min(to, start+4*judged)], '.')
	return start, to, head >= len("eyJ")+4
}

// privateKey finds a key in PEM or of PGP. A key that was cut off counts too.
func privateKey(t *text, start, end int) (from, to int, found bool) {
	const longest = 80
	head, _, is := strings.Cut(strings.ToUpper(t.s[end:min(len(t.s), end+longest)]), "-----")
	if !is || !strings.Contains(head, "PRIVATE KEY") || strings.Trim(head, uppers+digits+" _-") != "" {
		return 0, 0, false
	}
	const close = "-----END"
	for at := end; ; {
		next := strings.Index(t.s[at:], close)
		if next < 0 {
			t.work += len(t.s) - at
			return start, len(t.s), true
		}
		at += next + len(close)
		tail, _, is := strings.Cut(t.s[at:min(len(t.s), at+longest)], "-----")
		if is && strings.Contains(strings.ToUpper(tail), "PRIVATE KEY") {
			return start, at + len(tail) + len("-----"), true
		}
	}
}

// puttyKey finds a key of PuTTY, up to its last line.
func puttyKey(t *text, start, _ int) (from, to int, found bool) {
	const last = "Private-MAC:"
	at := strings.Index(t.s[start:], last)
	if at < 0 {
		return start, len(t.s), true
	}
	to = start + at + len(last)
	for to < len(t.s) && (t.s[to] == ' ' || isHex(t.s[to])) {
		to++
	}
	return start, to, true
}

// sshKeyTypes begin public keys. Their comments name their owners.
var sshKeyTypes = []string{"ssh-rsa", "ssh-dss", "ssh-ed25519", "ecdsa-sha2-nistp", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"}

func sshPublicKey(t *text, start, end int) (from, to int, found bool) {
	for end < len(t.s) && isDigit(t.s[end]) {
		end++
	}
	if !strings.HasPrefix(t.s[end:], " AAAA") {
		return 0, 0, false
	}
	to = t.base64(end + 1)
	if to-end < 20 {
		return 0, 0, false
	}
	if to+1 < len(t.s) && t.s[to] == ' ' && t.s[to+1] != ' ' {
		to = t.token(to + 1)
	}
	return start, to, true
}

// awsSecret finds the 40 characters of a secret key behind `aws`.
func awsSecret(t *text, _, end int) (from, to int, found bool) {
	const length, near = 40, 80
	for at := end; at < len(t.s) && at < end+near && t.s[at] != '\n'; at++ {
		if !isSecretOfAWS(t.s[at]) {
			continue
		}
		to := at
		for to < len(t.s) && to-at <= length && isSecretOfAWS(t.s[to]) {
			to++
		}
		if to-at == length && (to == len(t.s) || t.s[to] != '=') && entropy(t.s[at:to]) >= 4 && isMixed(t.s[at:to]) {
			return at, to, true
		}
		at = to
		for at < len(t.s) && at < end+near && isSecretOfAWS(t.s[at]) {
			at++
		}
	}
	return 0, 0, false
}

func isSecretOfAWS(c byte) bool { return isDigit(c) || isLetter(c) || c == '/' || c == '+' }
