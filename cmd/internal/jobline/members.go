package jobline

import (
	"bytes"
	"encoding/json"
	"iter"
)

// blanks are the bytes between the parts of JSON.
const blanks = " \t\r\n"

// isObject reports whether a valid JSON text is an object.
func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, blanks), []byte("{"))
}

// members returns the names and values of an object, which must be valid JSON in UTF-8, in their order. A decoder of tokens
// would check and copy each value, which costs three times as much. The values are parts of the text.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		rest := bytes.TrimLeft(object, blanks)[1:]
		for {
			rest = bytes.TrimLeft(rest, blanks+",")
			if rest[0] == '}' {
				return
			}
			end := endOfValue(rest)
			name := nameOf(rest[:end])
			rest = bytes.TrimLeft(rest[end:], blanks+":")
			end = endOfValue(rest)
			if !yield(name, json.RawMessage(rest[:end])) {
				return
			}
			rest = rest[end:]
		}
	}
}

// nameOf reads the text that a name of a valid object stands for.
func nameOf(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // the object is valid
	return name
}

// endOfValue returns the length of the value that valid JSON begins with.
func endOfValue(text []byte) int {
	depth := 0
	for at := 0; ; {
		switch text[at] {
		case '"':
			at += endOfText(text[at:])
		case '{', '[':
			depth++
			at++
			continue
		case '}', ']':
			depth--
			at++
		default:
			if at += endOfRun(text[at:]); depth > 0 {
				continue // more blanks, commas and colons may follow
			}
		}
		if depth == 0 {
			return at
		}
	}
}

// endOfText returns the length of the quoted text that valid JSON begins with.
func endOfText(text []byte) int {
	for at := 1; ; at += 2 {
		at += bytes.IndexAny(text[at:], "\"\\")
		if text[at] == '"' {
			return at + 1
		}
	}
}

// endOfRun returns the length of what stands before the next text, object, list or end. On the top level that is a
// number, true, false or null; within values it holds their commas and colons too.
func endOfRun(text []byte) int {
	if at := bytes.IndexAny(text, "\"{}[], \t\r\n"); at > 0 {
		return at
	}
	return 1
}
