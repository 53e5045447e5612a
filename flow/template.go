package flow

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-queue/sluice/internal/feature"
)

// fill returns the payload of a map's job: the template with an element and its place. An element that holds the texts of
// templates stays as it is.
func fill(template, item json.RawMessage, index int) json.RawMessage {
	return json.RawMessage(strings.NewReplacer(`"`+itemText+`"`, string(item), `"`+indexText+`"`, strconv.Itoa(index)).Replace(string(template)))
}

// templateName matches the text of a template as the name of a field. Nothing else in valid JSON looks like it.
var templateName = regexp.MustCompile(`"\{\{(item|index)\}\}"\s*:`)

// elements reads the result of a node as the elements of a map.
func elements(result json.RawMessage, node string, most int) ([]json.RawMessage, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(result, &items); err != nil || items == nil {
		return nil, feature.Invalid("over", fmt.Sprintf("the result of node %q must be a JSON array, and is %.40q", node, result))
	}
	if most == 0 {
		most = MaxElements
	}
	if len(items) > most {
		return nil, feature.Invalid("most", fmt.Sprintf("the result of node %q has %d elements; the map takes at most %d", node, len(items), most))
	}
	return items, nil
}
