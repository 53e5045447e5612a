package scrub

import "strings"

// The words that make a name a secret's, by their strength.
var (
	// passwordWords name values that people choose: short, perhaps only letters.
	passwordWords = []string{"password", "passwd", "passphrase", "passcode", "pwd", "passwort"}
	// secretWords name values that machines generate.
	secretWords = []string{
		"secret", "token", "credential", "api_key", "api-key", "apikey", "api key", "api.key",
		"access_key", "access-key", "accesskey", "access key", "private_key", "private-key", "privatekey", "private key",
		"auth_key", "auth-key", "authkey", "client_key", "client-key", "clientkey", "account_key", "account-key", "accountkey",
		"master_key", "master-key", "masterkey", "encryption_key", "encryption-key", "encryptionkey", "encryption key",
		"signing_key", "signing-key", "signingkey", "license_key", "licensekey", "webhook_key", "service_key", "shared_key", "sharedkey",
	}
	// weakWords occur in many names. Their value is a secret only if it was generated.
	weakWords = []string{
		"signature", "sessid", "sessionid", "session_id", "session-id", "session=", "session:", `session"`, ".sid", "sid=", "_sess", "-sess",
		`auth"`, `auth\`, "auth=", "auth:", "passkey", "otp_secret", "_pass=", "_pass:", `_pass"`, "pass=", "-pass ", "-pass=", "pass:", `pass"`, "bindpw", " pw=", "_pw=", "_pw:",
	}
)

// name is the name that a value is assigned to.
type name struct {
	start, end int
	word       int // the end of the word that makes the name a secret's
	kind       nameKind
	flag       bool // the name begins with a dash
	plural     bool
}

type nameKind int

const (
	noSecret nameKind = iota
	weakName
	secretName
	passwordName
)

const longestName = 64

var nameBytes = classOf(letters + digits + "_-.")

// nameAt returns the name around one of the words.
func nameAt(s string, start, end int, kind nameKind) name {
	for end > start && !nameBytes[s[end-1]] { // the word includes the sign behind the name
		end--
	}
	for start < end && !nameBytes[s[start]] {
		start++
	}
	n := name{start: start, end: end, word: end, kind: kind}
	for n.start > 0 && start-n.start < longestName && nameBytes[s[n.start-1]] {
		n.start--
	}
	for n.end < len(s) && n.end-end < longestName && nameBytes[s[n.end]] {
		n.end++
	}
	for n.end > end && (s[n.end-1] == '.' || s[n.end-1] == '-') {
		n.end--
	}
	if n.start >= 1 && s[n.start-1] == '\\' && (s[n.start] == 'n' || s[n.start] == 't' || s[n.start] == 'r') && n.start < start {
		n.start++ // an escaped \n before it
	}
	if escape := len("u003c"); n.start >= 1 && s[n.start-1] == '\\' && n.start+escape <= start && strings.HasPrefix(s[n.start:], "u00") {
		n.start += escape
	}
	n.flag = s[n.start] == '-'
	n.plural = n.word < n.end && s[n.word]|0x20 == 's'
	if !n.isSecret(s) {
		n.kind = noSecret
	}
	return n
}

// isSecret judges the rest of the name besides the word: token_type and max_tokens hold no secret, nor does a
// tokenizer.
func (n name) isSecret(s string) bool {
	rest := s[n.word:n.end]
	if n.plural {
		rest = rest[1:]
	}
	if rest != "" && rest[0] >= 'a' && rest[0] <= 'z' {
		return false
	}
	for _, part := range nameParts(rest) {
		if part == "id" && strings.EqualFold(s[n.start:n.end], "secret_id") {
			continue // the name in HashiCorp's Vault
		}
		if aboutSecrets[part] {
			return false
		}
	}
	for _, part := range nameParts(s[n.start:n.word]) {
		if countsSecrets[part] {
			return false
		}
	}
	return true
}

// aboutSecrets are parts of names behind the word, whose value only describes the secret.
var aboutSecrets = wordSet(`file filename path dir directory folder url uri endpoint type name names count counts length len size limit limits expires expiry
	expiration expired ttl age seconds secs ms minutes hours total used usage min max policy bucket rate attempts attempt retries reset
	changed created updated at in valid verified enabled disabled required set ref reference field column header prefix suffix format algorithm alg
	hint strength index pos position line version status state error err errors provider source manager store service issuer audience
	scope scopes env var budget left remaining needed present missing lifetime duration window cost price region bytes kind class rotation ids id`)

// countsSecrets are parts of names before the word, whose value is no secret either.
var countsSecrets = wordSet(`max min total num number n count next page prev previous continuation continue cursor sync fencing input output prompt
	completion cached reasoning unexpected no has is with without show hide skip forgot change need needs per used remaining last current parse peek`)

// nameParts splits a name at its signs and at its capitals.
func nameParts(s string) []string {
	var parts []string
	begin := 0
	end := func(at int) {
		if at > begin {
			parts = append(parts, strings.ToLower(s[begin:at]))
		}
	}
	for i := range len(s) {
		switch {
		case s[i] == '_' || s[i] == '-' || s[i] == '.':
			end(i)
			begin = i + 1
		case isUpper(s[i]) && i > 0 && !isUpper(s[i-1]):
			end(i)
			begin = i
		}
	}
	end(len(s))
	return parts
}

// isDirectory reports whether the name is the shell's variable of the current folder, and the value a folder.
func (n name) isDirectory(s, value string) bool {
	switch strings.ToLower(s[n.start:n.end]) {
	case "pwd", "oldpwd":
		return value[0] == '/' || value[0] == '~' || len(value) > 1 && value[1] == ':'
	}
	return false
}
