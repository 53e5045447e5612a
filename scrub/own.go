package scrub

import (
	"math"
	"strings"
	"unicode"
)

// ownRules are the rules of this package that have words. Numbers and addresses have none; see numbers and addresses.
func ownRules() []*rule {
	return []*rule{
		{
			family: Email, name: "email", words: []string{"@"},
			pattern: `[\pL\pN._%+'-]{1,64}@[\pL\pN](?:[\pL\pN-]*[\pL\pN])?(?:\.[\pL\pN](?:[\pL\pN-]*[\pL\pN])?)*\.\pL{2,24}`,
		},
		{
			family: HomePath, name: "home_path", words: []string{"/home/", "/users/"},
			pattern: `(?i)/(?:home|users)/([^\s/\\:;,"'<>|*?()\[\]{}$` + "`" + `]+)`, check: isUserName,
		},
		{
			family: HomePath, name: "windows_home_path", words: []string{`\users\`},
			pattern: `(?i)\\users\\{1,2}([^\\/:;,"'<>|*?\r\n]{1,64}?)(?:[\\/"'\r\n]|\s|$)`, check: isUserName,
		},
		{family: JWT, name: "jwt", words: []string{"eyj"}, pattern: `\beyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){1,4}`},
		{family: PrivateKey, name: "private_key", words: []string{"-----begin"}, // one that was cut off counts too
			pattern: `(?is)-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----|\z)`},
		{family: PrivateKey, name: "putty_key", words: []string{"putty-user-key-file"}, pattern: `(?is)PuTTY-User-Key-File.*?(?:Private-MAC: *[0-9a-f]+|\z)`},
		{family: PrivateKey, name: "ssh_public_key", words: []string{"aaaa"}, // its comment names its owner
			pattern: `(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-[a-z0-9-]+|sk-[a-z0-9@.-]+) AAAA[A-Za-z0-9+/=]{16,}(?: [^\s"']+)?`},
		{
			family: AWS, name: "aws_access_key_id", words: []string{"akia", "asia", "abia", "acca", "a3t", "aroa", "aida"},
			pattern: `\b(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|A3T[A-Z0-9])[A-Z0-9]{16}\b`,
		},
		{
			family: AWS, name: "aws_secret_key", words: []string{"aws"},
			pattern: `(?i)aws[^\r\n]{0,80}?\b([a-z0-9/+]{40})(?:[^a-z0-9/+=]|$)`, entropy: 4, check: isMixed,
		},
		{family: GitHub, name: "github_token", words: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, pattern: `gh[pousr]_[A-Za-z0-9]{20,255}`},
		{family: GitHub, name: "github_fine_grained_token", words: []string{"github_pat_"}, pattern: `github_pat_[A-Za-z0-9_]{20,255}`},
		{family: VendorKey, name: "prefixed_key", words: prefixes, pattern: prefixPattern(), check: isMixed},
		{family: Password, name: "url_password", words: []string{"://"}, pattern: `(?i)[a-z][a-z0-9+.-]*://[^\s/@:'"]*:([^\s@'"]+)@`, check: isNoPlaceholder},
		{
			family: Password, name: "authorization", words: []string{"bearer", "basic"},
			pattern: `(?i)\b(?:bearer|basic)["']?[ :]\s{0,3}["']?([a-z0-9._~+/=-]{8,})`, check: isMixed,
		},
		{family: Password, name: "authorization_header", words: []string{"authorization:"}, pattern: `(?i)\bauthorization:[ \t]*([^\r\n"']{6,})`, check: isNoPlaceholder},
		{family: Password, name: "cookie", words: []string{"cookie:"}, pattern: `(?i)\bcookie:[ \t]*([^\r\n"']{4,})`, check: isNoPlaceholder},
		{family: Password, name: "assignment", words: secretWords, pattern: assignmentPattern, check: isAssigned},
		{
			family: Password, name: "command_line", words: []string{"curl", "--password", "--token", "-u "},
			pattern: `(?:\s-u|--user|--password|--token)[ =]{1,3}["']?([^\s"']{4,})`, check: isCommandSecret,
		},
		{family: SSN, name: "ssn_named", words: []string{"ssn", "social security"}, pattern: `(?i)(?:\bssn\b|social security(?: number| no\.?)?)[^0-9\r\n]{0,20}(\d{9})(?:\D|$)`},
	}
}

// prefixes begin keys of vendors whose length is not fixed, or has changed.
var prefixes = []string{
	"sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "whsec_", "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-",
	"xoxs-", "xapp-", "aiza", "ya29.", "glpat-", "glrt-", "gldt-", "npm_", "pypi-", "hf_", "sg.", "shpat_", "shpss_", "shpca_", "dop_v1_",
	"doo_v1_", "dckr_pat_", "sq0csp-", "sq0atp-", "lin_api_", "tskey-", "age-secret-key-", "nvapi-", "gsk_", "r8_", "pplx-", "xai-", "atatt3",
	"figd_", "secret_", "ntn_", "pul-", "hvs.", "rdme_", "sbp_", "vercel_",
}

func prefixPattern() string {
	var all []string
	for _, prefix := range prefixes {
		all = append(all, strings.ReplaceAll(prefix, ".", `\.`))
	}
	return `(?i)(?:^|[^a-z0-9_-])((?:` + strings.Join(all, "|") + `)[a-z0-9_.-]{14,}[a-z0-9_])`
}

// secretWords are in the names of what is secret.
var secretWords = []string{
	"password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "api_key", "api-key", "apikey",
	"access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey", "auth_key", "auth-key", "authkey",
	"client_key", "account_key", "accountkey", "master_key", "encryption_key", "signing_key", "api key", "sharedaccesskey",
}

// assignmentPattern finds NAME = VALUE, "name": "value", name := 'value', name is value, and what is escaped in JSON. The value
// is the first group, in quotes, or the second.
const assignmentPattern = `(?i)(?:password|passwd|passphrase|passcode|pwd|secret|token|credentials?|(?:api|access|private|auth|client|account|master|encryption|signing)[ _-]?key)` +
	`[\w.-]{0,30}(?:\\?["'` + "`" + `])?\]?[ \t]{0,4}(?::=|=>|==|!=|=|:|\b(?:is|was)\b)[ \t]{0,4}` +
	`(?:\\?["'` + "`" + `]([^"'` + "`" + `\\\r\n]{4,200})\\?["'` + "`" + `]|([^\s"'` + "`" + `,;]{4,200}))`

// isAssigned tells a secret that is assigned from code and from prose.
func isAssigned(m match) bool {
	if !isNoPlaceholder(m) {
		return false
	}
	value, quoted := strings.TrimRight(m.value, ".)]}>"), strings.ContainsAny(lastOf(m.before), "\"'`")
	switch {
	case quoted:
		return len(value) >= 6 && !strings.Contains(strings.Trim(value, " "), " ") || isMixed(match{value: value}) && !strings.HasSuffix(value, ":")
	case strings.ContainsAny(value, "(<{"), strings.HasSuffix(value, ":"), strings.HasPrefix(value, "&"), strings.HasPrefix(value, "//"):
		return false // code
	case strings.HasSuffix(m.before, "=") && !strings.HasSuffix(m.before, " =") && !strings.HasSuffix(m.before, ":=") && len(value) >= 6:
		return !isDotted(value)
	}
	return len(value) >= 6 && hasDigit(value) && (strings.ContainsFunc(value, unicode.IsLetter) || len(value) >= 8) && !isDotted(value)
}

func lastOf(text string) string { return text[max(0, len(text)-1):] }

// isDotted reports whether a value is a name in code, such as config.Token.
func isDotted(value string) bool {
	parts := strings.Split(value, ".")
	if len(parts) < 2 {
		return false
	}
	for _, part := range parts {
		if part == "" || hasDigit(part) || strings.ContainsFunc(part, func(c rune) bool { return !unicode.IsLetter(c) && c != '_' }) {
			return false
		}
	}
	return true
}

// isNoPlaceholder reports whether a value may be real: no variable, no stars, nothing that stands for a value.
func isNoPlaceholder(m match) bool {
	value := strings.ToLower(strings.Trim(m.value, ` "'`))
	for _, prefix := range []string{"$", "<", "{{", "%(", "%s", "%v", "process.env", "os.environ", "os.getenv", "env.", "env:", "file:", "your", "***", "...", "xxx"} {
		if strings.HasPrefix(value, prefix) {
			return false
		}
	}
	switch value {
	case "null", "none", "nil", "true", "false", "undefined", "string", "required", "optional", "redacted", "changeme", "password", "secret", "token", "example", "placeholder":
		return false
	}
	return strings.Trim(value, "*.x-_•") != ""
}

// isMixed reports whether a value is more than words: it has digits and letters, and is not all one group of them.
func isMixed(m match) bool {
	return hasDigit(m.value) && strings.ContainsFunc(m.value, unicode.IsLetter) && entropy(m.value) >= 2.5
}

func hasDigit(value string) bool { return strings.ContainsFunc(value, unicode.IsDigit) }

// isCommandSecret reports whether what follows a flag is a secret: after -u and --user only what has a colon.
func isCommandSecret(m match) bool {
	if !isNoPlaceholder(m) {
		return false
	}
	return !strings.Contains(m.before, "-u") || strings.Contains(strings.TrimRight(m.value, ":"), ":")
}

// isUserName leaves out what is no one's name.
func isUserName(m match) bool {
	switch strings.ToLower(m.value) {
	case "shared", "public", "default", "all", "user", "username", "you", "runner", "linuxbrew", "me", "id", "..", ".":
		return false
	}
	return isNoPlaceholder(m)
}

// entropy is how many bits a character of a value holds, by how often each is in it (Shannon).
func entropy(value string) float64 {
	counts := make(map[rune]int)
	total := 0
	for _, c := range value {
		counts[c]++
		total++
	}
	bits := 0.0
	for _, n := range counts {
		p := float64(n) / float64(total)
		bits -= p * math.Log2(p)
	}
	return bits
}
