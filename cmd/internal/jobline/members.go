package jobline

import (
	"bytes"
	"encoding/json"

	"github.com/sluice-queue/sluice/internal/jsonscan"
)

// eachMember calls a function with the names and values of an object, in their order, and checks the object on the way. False:
// it is no valid JSON object, or the function returned an error. The text must be UTF-8. The values are parts of it. A decoder
// of tokens would check and copy each value, which costs many times as much.
func eachMember(object []byte, call func(name string, value json.RawMessage) error) (bool, error) {
	at := jsonscan.Blanks(object, 0)
	if !stands(object, at, '{') {
		return false, nil
	}
	if at = jsonscan.Blanks(object, at+1); stands(object, at, '}') {
		return jsonscan.Blanks(object, at+1) == len(object), nil
	}
	for {
		if !stands(object, at, '"') {
			return false, nil
		}
		name := at
		if at = jsonscan.End(object, at); at < 0 {
			return false, nil
		}
		colon := jsonscan.Blanks(object, at)
		if !stands(object, colon, ':') {
			return false, nil
		}
		value := jsonscan.Blanks(object, colon+1)
		end := jsonscan.End(object, value)
		if end < 0 {
			return false, nil
		}
		if err := call(textOf(object[name:at]), object[value:end]); err != nil {
			return false, err
		}
		switch at = jsonscan.Blanks(object, end); {
		case stands(object, at, '}'):
			return jsonscan.Blanks(object, at+1) == len(object), nil
		case !stands(object, at, ','):
			return false, nil
		}
		at = jsonscan.Blanks(object, at+1)
	}
}

// stands reports whether a byte stands at a place.
func stands(text []byte, at int, c byte) bool { return at < len(text) && text[at] == c }

// textOf reads what a valid quoted text stands for.
func textOf(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is valid
	return text
}
