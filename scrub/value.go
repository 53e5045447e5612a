package scrub

import (
	"math"
	"strings"
	"unicode"
)

// judged is how much of a value is looked at to tell whether it is a secret.
const judged = 256

// mayBeReal reports whether a value is no placeholder: no variable, no stars, nothing that stands for a value.
func mayBeReal(value string) bool {
	value = strings.ToLower(strings.Trim(value, " \"'"))
	for _, prefix := range placeholders {
		if strings.HasPrefix(value, prefix) {
			return false
		}
	}
	return !noValues[strings.TrimRight(value, ".,;:!?)]}>")] && strings.Trim(value, "*.x-_•#…") != "" && !isMark(value)
}

// placeholders begin what stands for a value.
var placeholders = []string{
	"$", "<", "{{", "${", "%(", "%s", "%v", "%q", "%d", "%w", "%[", "%+v", "%t", "%x", "#{", "process.env", "os.environ", "os.getenv", "env.", "env:", "file:",
	"your_", "your-", "yourp", "yours", "your ", "***", "...", "xxx", "vault:", "secret://", "arn:aws:secretsmanager", "(empty", "(none", "(redacted", "(hidden", "@{", `\u003c`, `\\u003c`, "!ref", "!vault", "!secret",
}

// noValues are words that say something of a value, or stand for it.
var noValues = wordSet(`null none nil true false undefined string required optional redacted changeme password secret token example placeholder
	str int integer bool boolean bytes byte text varchar any object number float array list map unknown empty missing invalid expired
	incorrect wrong rejected denied mismatch hidden masked removed filtered unset yes no on off default basic bearer digest plain
	passwd pass key value user username admin:password n/a unauthorized forbidden revoked disabled enabled failed failure error`)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// isMark reports whether a value is what was put in the place of something, cut off perhaps.
func isMark(value string) bool {
	return strings.HasPrefix(value, mark) && familyNames()[strings.Trim(value[len(mark):], "].,;:!?)}>")]
}

// isMixed reports whether a value is more than words: it has digits and letters, and is not all one group of them.
func isMixed(value string) bool {
	return hasDigit(value) && hasLetter(value) && entropy(value) >= 2.5
}

func hasDigit(value string) bool { return strings.ContainsAny(value, digits) }

func hasLetter(value string) bool { return strings.ContainsFunc(value, unicode.IsLetter) }

// isRandom reports whether a value is one that a machine drew: letters and digits by turns, as no word, name, date or
// number has. Ids in the form of a UUID are none.
func isRandom(value string, least int) bool {
	if len(value) < least || !isMixed(value) && entropy(value) < 4 || isUUID(value) {
		return false
	}
	turns, last := 0, 0
	for i := range min(len(value), judged) {
		kind := kindOf(value[i])
		if kind == 0 {
			continue
		}
		if last != 0 && kind != last {
			turns++
		}
		last = kind
	}
	return turns >= 4 && entropy(value) >= 3
}

func kindOf(c byte) int {
	switch {
	case isDigit(c):
		return 1
	case isUpper(c):
		return 2
	case isLetter(c):
		return 3
	}
	return 0
}

func isUUID(value string) bool {
	if len(value) != 36 || strings.Count(value, "-") != 4 {
		return false
	}
	for i := range len(value) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (value[i] == '-') || !dash && !isHex(value[i]) {
			return false
		}
	}
	return true
}

// isCode reports whether a value without quotes is code: a call, an element, a name with dots, a pointer, a sign.
func isCode(value string) bool {
	if value == "" || strings.ContainsRune("&*!([{<=+|?/~,;)", rune(value[0])) && !isBoxed(value) {
		return !strings.HasPrefix(value, "/") || isPath(value)
	}
	name := 0
	for name < len(value) && (isWord(value[name]) || value[name] == '.') {
		name++
	}
	if name < len(value) && name > 0 && !isDigit(value[0]) {
		switch value[name] {
		case '(':
			return strings.Contains(value[name:], ")") || name == len(value)-1
		case '[':
			return strings.Contains(value[name:], "]")
		case '{':
			return strings.HasSuffix(value, "{") || strings.HasSuffix(value, "}")
		}
	}
	return isDotted(value) || isVersionNumber(value) || isDate(value) || isPointer(value) || isParameter(value)
}

// isBoxed reports whether a value is in braces that are part of a connection string, or begins with a sign as a drawn
// password may: with digits and letters of both cases.
func isBoxed(value string) bool {
	return len(value) >= 8 && isMixed(value) && strings.ContainsAny(value, lowers) && strings.ContainsAny(value, uppers) && !strings.ContainsAny(value, " ().,")
}

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

func isVersionNumber(value string) bool {
	value = strings.TrimPrefix(value, "v")
	return value != "" && strings.Contains(value, ".") && strings.Trim(value, digits+".") == ""
}

// isDate reports whether a value is a day, or begins with one.
func isDate(value string) bool {
	return len(value) >= 10 && value[4] == '-' && value[7] == '-' && strings.Trim(value[:4]+value[5:7]+value[8:10], digits) == ""
}

// isPointer reports whether a value is a place in memory, as Go prints it.
func isPointer(value string) bool {
	return strings.HasPrefix(value, "0x") && len(value) <= 18 && strings.Trim(value[2:], digits+"abcdefABCDEF") == ""
}

// isParameter reports whether a value is a parameter of a statement: :password, @p1.
func isParameter(value string) bool {
	return (value[0] == ':' || value[0] == '@') && strings.Trim(value[1:], lowers+"_"+digits) == "" && len(value) < 20
}

// isPath reports whether a value is the name of a file, such as /run/secrets/db.
func isPath(value string) bool {
	if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "./") && !strings.HasPrefix(value, "~/") && !strings.HasPrefix(value, `C:\`) {
		return false
	}
	return strings.Trim(value, lowers+digits+`/._-~C:\`) == "" && (strings.Count(value, "/") > 1 || !isMixed(value)) && longestAlnum(value) < 20
}

// longestAlnum is the length of the longest stretch of letters and digits.
func longestAlnum(value string) int {
	longest, length := 0, 0
	for i := range len(value) {
		if length++; kindOf(value[i]) == 0 {
			length = 0
		}
		longest = max(longest, length)
	}
	return longest
}

// entropy is how many bits a character of a value holds, by how often each is in it (Shannon).
func entropy(value string) float64 {
	var counts [256]int
	value = value[:min(len(value), 4*judged)]
	for i := range len(value) {
		counts[value[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(value))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
