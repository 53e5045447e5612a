package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/sluice-queue/sluice/engine"
)

// The classes of failures: what kind of end a job came to, as far as the text of its error says so. Where a handler's own
// error begins with the name of its type, as in «TimeoutError: no answer», that name is the class.
const (
	// ClassError: the handler's own error, which does not name its type.
	ClassError = "error"
	// ClassPanic: the handler panicked.
	ClassPanic = "panic"
	// ClassTimeout: the attempt took longer than the queue's timeout.
	ClassTimeout = "timeout"
	// ClassPoison: it lost max_recoveries holders.
	ClassPoison = "poison"
	// ClassPayload: its payload does not fit what the handler or the payload_schema expects.
	ClassPayload = "payload"
	// ClassRefused: the engine will never take its run.
	ClassRefused = "refused"
	// ClassRun: its run failed at the engine, was cancelled or terminated there.
	ClassRun = "run failed"
	// ClassRunTimeout: its run took too long at the engine.
	ClassRunTimeout = "run timed out"
	// ClassResolved: a person said that its run failed.
	ClassResolved = "resolved"
	// ClassPermanent: the handler said that it can never succeed, in its text.
	ClassPermanent = "permanent"
	// ClassUnknown: there is no text.
	ClassUnknown = "unknown"
)

// fingerprintBytes is how much of an error's text is looked at.
const fingerprintBytes = 2 << 10

// Fingerprint tells alike failures from others: eight hexadecimal digits over the queue, the class and the message as
// normalise leaves it. The same cause gives the same digits, whatever ids, figures and times its texts name.
func Fingerprint(queue, text string) string {
	class, message := Classify(text)
	sum := sha256.Sum256([]byte(queue + "\x00" + class + "\x00" + message))
	return hex.EncodeToString(sum[:4])
}

// Classify gives the class of a failure, and its message without what differs from one job to the next. It looks at the
// first 2 KiB of the text.
func Classify(text string) (class, message string) {
	if len(text) > fingerprintBytes {
		text = text[:fingerprintBytes]
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return ClassUnknown, ""
	}
	class, rest := ownClass(text)
	if class == "" {
		class, rest = typeOf(text)
	}
	return class, normalise(rest)
}

// ownTexts are how errors begin that this library writes itself, the longer ones first.
var ownTexts = []struct{ begins, class string }{
	{"the run failed, as ", ClassResolved},
	{"the run timed out", ClassRunTimeout},
	{"the run failed", ClassRun},
	{"the run cancelled", ClassRun},
	{"the run terminated", ClassRun},
	{"attempt timed out after ", ClassTimeout},
	{"poison: ", ClassPoison},
	{"panic: ", ClassPanic},
	{"invalid payload: ", ClassPayload},
	{"permanent: ", ClassPermanent},
}

// ownClass knows the ends that this library gives jobs itself; empty: the text is somebody else's.
func ownClass(text string) (class, rest string) {
	for _, own := range ownTexts {
		if after, begins := strings.CutPrefix(text, own.begins); begins {
			if own.class == ClassResolved { // whoever found out
				if _, reason, found := strings.Cut(after, " found out: "); found {
					after = reason
				}
			}
			return own.class, strings.TrimLeft(after, ": ")
		}
	}
	if strings.Contains(text, engine.ErrRefused.Error()) || strings.HasPrefix(text, engine.ErrRefTaken.Error()) {
		return ClassRefused, text
	}
	return "", text
}

// maxTypeBytes is how long the name of an error's type may be.
const maxTypeBytes = 80

// typeOf cuts the name of its type off an error: a word such as TimeoutError or java.sql.SQLException, or the exit status
// of a program.
func typeOf(text string) (class, rest string) {
	if after, is := strings.CutPrefix(text, "exit status "); is {
		code, rest, _ := strings.Cut(after, ":")
		if code = strings.TrimSpace(code); code != "" && len(code) <= 3 && strings.Trim(code, "0123456789") == "" {
			return "exit " + code, strings.TrimSpace(rest)
		}
	}
	name, rest, found := strings.Cut(text, ":")
	if !found || len(name) > maxTypeBytes || !isTypeName(name) {
		return ClassError, text
	}
	return name, strings.TrimSpace(rest)
}

// isTypeName reports whether a word looks like the name of a type: one word of letters, digits, dots and underlines with a
// capital in it that is not its only letter, and not the name of a variable such as an id.
func isTypeName(name string) bool {
	capital, small, digits := false, false, 0
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			capital = true
		case c >= 'a' && c <= 'z':
			small = true
		case c >= '0' && c <= '9':
			digits++
		case c != '.' && c != '_' && c != '$' && c != '*':
			return false
		}
	}
	return capital && small && digits <= 2
}
