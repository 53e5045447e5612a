package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// node is a part of a JSON value: an object, a list, or a value.
type node struct {
	Key  string
	Kind string // object, list, text, number, word, cut
	Text string
	// Nodes are those of an object or a list. Open says that they are shown at first.
	Nodes []node
	Open  bool
	// Redacted says that the text stands for a secret that Sluice has removed.
	Redacted bool
	// Hit says that the name or the text has what a person looks for.
	Hit bool
}

const (
	// maxNodes is the most parts of a value that a page shows, and maxDepth how deep they are.
	maxNodes, maxDepth = 2000, 40
	// maxNodeText is the most bytes of a text.
	maxNodeText = 4000
	// openNodes is how many parts are shown at first.
	openNodes = 40
)

// treeReader reads a JSON value, or the parts of it that a person looks for.
type treeReader struct {
	json *json.Decoder
	left int // parts to show
	// find is a part of the names and texts to look for, in lower case. Empty: all are shown. Found counts those that have it.
	find  string
	found int
}

// readTree reads a JSON value for people. It keeps the order of names.
func readTree(text json.RawMessage) node {
	n, _ := findTree(text, "")
	return n
}

// findTree is readTree with only those parts that have a text in their name or value, and with their number. Capitals are as small
// letters. An empty text finds all.
func findTree(text json.RawMessage, find string) (n node, found int) {
	r := treeReader{json: json.NewDecoder(bytes.NewReader(text)), left: maxNodes, find: strings.ToLower(find)}
	r.json.UseNumber()
	n, err := r.read(0, r.find == "")
	if err != nil {
		return node{Kind: "text", Text: cutText(string(text))}, 0
	}
	return n, r.found
}

// has reports whether a name or a text has what is looked for.
func (r *treeReader) has(text string) bool {
	hit := r.find != "" && strings.Contains(strings.ToLower(text), r.find)
	if hit {
		r.found++
	}
	return hit
}

// read reads the next value. Whole says that all of its parts are shown.
func (r *treeReader) read(depth int, whole bool) (node, error) {
	token, err := r.json.Token()
	if err != nil {
		return node{}, err
	}
	if whole {
		r.left--
	}
	switch value := token.(type) {
	case json.Delim:
		n := node{Kind: "list", Open: r.find != "" || maxNodes-r.left <= openNodes}
		if value == '{' {
			n.Kind = "object"
		}
		return n, r.readNodes(&n, depth, whole)
	case string:
		return node{Kind: "text", Text: cutText(value), Redacted: strings.Contains(value, "[redacted:"), Hit: r.has(value)}, nil
	case json.Number:
		return node{Kind: "number", Text: value.String(), Hit: r.has(value.String())}, nil
	}
	text := fmt.Sprint(tokenText(token))
	return node{Kind: "word", Text: text, Hit: r.has(text)}, nil
}

// tokenText is null, true or false.
func tokenText(token json.Token) any {
	if token == nil {
		return "null"
	}
	return token
}

// readNodes reads the parts of an object or a list. What there is too much of is counted, not shown.
func (r *treeReader) readNodes(n *node, depth int, whole bool) error {
	hidden := 0
	for i := 0; r.json.More(); i++ {
		key, hit := fmt.Sprint(i), false
		if n.Kind == "object" {
			token, err := r.json.Token()
			if err != nil {
				return err
			}
			key, _ = token.(string)
			hit = r.has(key)
		}
		if r.left <= 0 || depth >= maxDepth {
			var skipped json.RawMessage
			if err := r.json.Decode(&skipped); err != nil {
				return err
			}
			hidden++
			continue
		}
		one, err := r.read(depth+1, whole || hit)
		if err != nil {
			return err
		}
		if one.Key, one.Hit = cutText(key), one.Hit || hit; !whole && !one.Hit && len(one.Nodes) == 0 {
			continue
		}
		if !whole && !hit {
			r.left--
		}
		n.Nodes = append(n.Nodes, one)
	}
	if hidden > 0 {
		n.Nodes = append(n.Nodes, node{Kind: "cut", Text: draw.Plural(hidden, "more part") + ": see the raw job"})
	}
	_, err := r.json.Token() // the end
	return err
}

// cutText bounds a text.
func cutText(text string) string {
	if len(text) <= maxNodeText {
		return text
	}
	return strings.ToValidUTF8(text[:maxNodeText], "") + "…"
}
