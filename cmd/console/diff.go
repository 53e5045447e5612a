package console

import (
	"encoding/json"
	"slices"
	"strings"
)

// difference is a value that a change replaced.
type difference struct {
	Name, Before, After string
}

// differences compares the objects before and after a change, by their names. Without an object before, all values are
// new.
func differences(before, after json.RawMessage) (found []difference) {
	old, now := objectOf(before), objectOf(after)
	names := make([]string, 0, len(old)+len(now))
	for name := range old {
		names = append(names, name)
	}
	for name := range now {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was, is := textOf(old[name]), textOf(now[name]); was != is {
			found = append(found, difference{name, was, is})
		}
	}
	return found
}

func objectOf(text json.RawMessage) (object map[string]json.RawMessage) {
	if json.Unmarshal(text, &object) != nil && len(text) > 0 {
		object = map[string]json.RawMessage{"value": text}
	}
	return object
}

// textOf shows a value: texts without their quotes.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return strings.TrimSpace(string(value))
}
