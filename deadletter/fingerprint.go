package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/sluice-queue/sluice/engine"
)

// The classes of failures: the kind of end, as far as the error text shows it. If a handler's own error begins with
// its type, as in «TimeoutError: no answer», that type is the class.
const (
	// ClassError: the handler's own error, without a type.
	ClassError = "error"
	// ClassPanic: the handler panicked.
	ClassPanic = "panic"
	// ClassTimeout: the attempt took longer than the queue's timeout.
	ClassTimeout = "timeout"
	// ClassPoison: the job lost max_recoveries holders.
	ClassPoison = "poison"
	// ClassPayload: the payload does not fit the handler's type or the payload_schema.
	ClassPayload = "payload"
	// ClassRefused: the engine will never accept the run.
	ClassRefused = "refused"
	// ClassRun: the run failed at the engine, or was cancelled or terminated there.
	ClassRun = "run failed"
	// ClassRunTimeout: the run took too long at the engine.
	ClassRunTimeout = "run timed out"
	// ClassResolved: a person reported that the run failed.
	ClassResolved = "resolved"
	// ClassPermanent: the handler's error says that the job can never succeed.
	ClassPermanent = "permanent"
	// ClassUnknown: the job has no error text.
	ClassUnknown = "unknown"
)

// fingerprintSum is how many bytes of a hash are in a fingerprint.
const fingerprintSum = 4

// fingerprintBytes is how much of an error text Classify reads.
const fingerprintBytes = 2 << 10

// Fingerprint returns the same eight hexadecimal digits for similar failures of a queue. It is a hash of the queue,
// and of the class and message of [Classify]. IDs, numbers and times in the text do not change it.
func Fingerprint(queue, text string) string {
	class, message := Classify(text)
	sum := sha256.Sum256([]byte(queue + "\x00" + class + "\x00" + message))
	return hex.EncodeToString(sum[:fingerprintSum])
}

// Classify returns the class of a failure, and its message without the parts that differ from job to job. It reads
// the first 2 KiB of the text.
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

// ownTexts are the beginnings of the errors that this library writes, the longer ones first.
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

// ownClass returns the class of an error that this library wrote. Empty: another program wrote the text.
func ownClass(text string) (class, rest string) {
	for _, own := range ownTexts {
		if after, begins := strings.CutPrefix(text, own.begins); begins {
			if own.class == ClassResolved { // skip the name of the person
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

// maxTypeBytes is the most bytes of an error type's name.
const maxTypeBytes = 80

// typeOf splits the type off an error: a word such as TimeoutError or java.sql.SQLException, or the exit status of
// a program.
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

// isTypeName reports whether a word looks like the name of a type. It is one word of letters, digits, dots and
// underlines, with capital and small letters and at most 2 digits.
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
