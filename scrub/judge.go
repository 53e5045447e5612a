package scrub

import "strings"

// isSecret reports whether an assigned value is a secret, not code or prose.
func (a *assignment) isSecret(s string) bool {
	v := a.value
	switch {
	case !mayBeReal(v), isPath(v), a.name.isDirectory(s, v), beginsURL(v):
		return false
	case a.name.kind == weakName:
		return a.isWeakSecret(s)
	case a.quoted || a.sign == tag || a.sign == pairs:
		return a.isQuotedSecret()
	case isCode(v) || isCode(v+s[a.to:min(len(s), a.to+1)]) || a.isTokenOfCode(s):
		return false
	case a.sign == follows:
		return a.isArgument()
	case a.name.plural && !hasLetter(v):
		return false // a count
	case a.attached && a.sign == equals:
		return a.isAttached(s)
	case a.name.kind == passwordName && a.sign != says && a.isWholeLine(s):
		return len(v) >= 6 || len(v) == 5 && hasDigit(v)
	case a.attached && a.sign == colon && a.name.kind == passwordName && strings.Trim(v, lowers) == "":
		return len(v) >= 8 // a field of Go's %+v
	}
	return len(v) >= 6 && hasDigit(v) && (hasLetter(v) || len(v) >= 8 && a.sign != says) && !a.isNumbered() ||
		len(v) == 5 && hasDigit(v) && hasLetter(v) && a.name.kind == passwordName && a.sign != says
}

// beginsURL leaves URLs to their own rules.
func beginsURL(v string) bool {
	scheme, _, is := strings.Cut(v, "://")
	return is && len(scheme) < 20 && strings.Trim(scheme, letters+digits+"+-.") == ""
}

// isQuotedSecret judges a value in quotes or in an element. Generated secrets have digits, or are long.
func (a *assignment) isQuotedSecret() bool {
	v := a.value
	if inner := strings.Trim(v, " "); strings.Contains(inner, " ") {
		return isMixed(v) && !strings.HasSuffix(v, ":") && strings.Count(inner, " ") < 6
	}
	if a.name.kind == passwordName {
		return len(v) >= 3 && !strings.HasSuffix(v, ":") && !strings.HasSuffix(v, "=")
	}
	if len(v) < 6 || a.name.plural && !hasLetter(v) {
		return false
	}
	return hasDigit(v) && hasLetter(v) || hasDigit(v) && len(v) >= 8 || len(v) >= 12 && !isWords(v)
}

// isWords reports whether a value is words of lower case with signs between them.
func isWords(v string) bool {
	return strings.Trim(v, lowers+"_-. ") == "" && (strings.ContainsAny(v, "_-. ") || len(v) < 16) || strings.Trim(v, uppers+"_") == ""
}

// isAttached judges name=value.
func (a *assignment) isAttached(s string) bool {
	v := a.value
	if a.name.kind == passwordName && len(v) >= 3 && hasDigit(v) {
		return true
	}
	if len(v) < 6 {
		return len(v) == 5 && hasDigit(v) && hasLetter(v)
	}
	return hasDigit(v) || !isWordOfCode(v) || !a.isArgumentOfCall(s)
}

// isWordOfCode reports whether a value may be a name in code.
func isWordOfCode(v string) bool { return strings.Trim(v, letters+"_") == "" }

// isArgumentOfCall reports whether the assignment is in the brackets of a call, such as login(password=given).
func (a *assignment) isArgumentOfCall(s string) bool {
	line := s[max(0, a.name.start-judged):a.name.start]
	open := strings.LastIndexAny(line, "()\n")
	return open > 0 && line[open] == '(' && isWord(line[open-1])
}

// isTokenOfCode reports whether a token is a token of a language: unexpected token: x1.
func (a *assignment) isTokenOfCode(s string) bool {
	before := strings.ToLower(strings.TrimRight(s[max(0, a.name.start-16):a.name.start], " "))
	for _, word := range []string{"unexpected", "illegal", "next", "unknown"} {
		if strings.HasSuffix(before, word) {
			return true
		}
	}
	return false
}

// isWholeLine reports whether the line holds only the name and the value, as in YAML and INI.
func (a *assignment) isWholeLine(s string) bool {
	if a.to < len(s) && s[a.to] != '\n' && s[a.to] != '\r' && (s[a.to] != '\\' || !endsLine(s[a.to+1:])) {
		return false
	}
	before := strings.TrimRight(s[max(0, a.name.start-mostBlanks):a.name.start], " -\t")
	return before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, `\n`)
}

// isArgument judges the text behind a flag, or behind a word of .netrc.
func (a *assignment) isArgument() bool {
	v := a.value
	if !hasDigit(v) && strings.Contains(v, ":") {
		return false // a name and a remark about it
	}
	return a.name.flag && !strings.HasPrefix(v, "-") && !proseWords[strings.ToLower(v)] && (len(v) >= 6 || len(v) >= 4 && hasDigit(v))
}

// proseWords follow the name of a flag in a sentence.
var proseWords = wordSet(`is are was to must flag flags option options or and for from with if should needs given required not set missing in on at the
	argument value values without when where cannot can may will takes expects environment variable before after instead neither means nor has`)

// isNumbered reports whether a value is a name of code with a number behind it: token2.
func (a *assignment) isNumbered() bool {
	word := strings.ToLower(strings.TrimRight(a.value, digits))
	return a.sign == equals && a.name.kind == secretName && len(word) >= len(a.value)-2 && isWordOfCode(word) &&
		(noValues[word] || strings.Contains(word, "token") || strings.Contains(word, "secret") || strings.HasSuffix(word, "key"))
}

// isWeakSecret accepts only generated values.
func (a *assignment) isWeakSecret(s string) bool {
	if a.sign == says || a.sign == follows && !a.name.flag || !a.quoted && isCode(a.value) {
		return false
	}
	word := strings.ToLower(s[a.name.start:a.name.end])
	if parts := nameParts(s[a.name.start:a.name.end]); len(parts) > 0 && (parts[len(parts)-1] == "pass" || parts[len(parts)-1] == "pw") {
		return len(a.value) >= 6 && hasLetter(a.value) && (hasDigit(a.value) || len(word) > len("pass") && a.sign == equals && a.attached)
	}
	if strings.HasSuffix(word, "sessid") || word == "jsessionid" {
		return len(a.value) >= 8 && hasDigit(a.value)
	}
	return isRandom(a.value, 12)
}
