package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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
}

const (
	// maxNodes is the most parts of a value that a page shows, and maxDepth how deep they are.
	maxNodes, maxDepth = 2000, 40
	// maxNodeText is the most bytes of a text.
	maxNodeText = 4000
	// openNodes is how many parts are shown at first.
	openNodes = 40
)

// readTree reads a JSON value for people. It keeps the order of names.
func readTree(text json.RawMessage) node {
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	left := maxNodes
	n, err := readNode(reader, &left, 0)
	if err != nil {
		return node{Kind: "text", Text: cutText(string(text))}
	}
	return n
}

// readNode reads the next value.
func readNode(reader *json.Decoder, left *int, depth int) (node, error) {
	token, err := reader.Token()
	if err != nil {
		return node{}, err
	}
	*left--
	switch value := token.(type) {
	case json.Delim:
		n := node{Kind: "list", Open: maxNodes-*left <= openNodes}
		if value == '{' {
			n.Kind = "object"
		}
		return n, n.readNodes(reader, left, depth)
	case string:
		return node{Kind: "text", Text: cutText(value), Redacted: strings.Contains(value, "[redacted:")}, nil
	case json.Number:
		return node{Kind: "number", Text: value.String()}, nil
	}
	return node{Kind: "word", Text: fmt.Sprint(tokenText(token))}, nil
}

// tokenText is null, true or false.
func tokenText(token json.Token) any {
	if token == nil {
		return "null"
	}
	return token
}

// readNodes reads the parts of an object or a list. What there is too much of is counted, not shown.
func (n *node) readNodes(reader *json.Decoder, left *int, depth int) error {
	hidden := 0
	for i := 0; reader.More(); i++ {
		key := fmt.Sprint(i)
		if n.Kind == "object" {
			token, err := reader.Token()
			if err != nil {
				return err
			}
			key, _ = token.(string)
		}
		if *left <= 0 || depth >= maxDepth {
			var skipped json.RawMessage
			if err := reader.Decode(&skipped); err != nil {
				return err
			}
			hidden++
			continue
		}
		one, err := readNode(reader, left, depth+1)
		if err != nil {
			return err
		}
		one.Key = cutText(key)
		n.Nodes = append(n.Nodes, one)
	}
	if hidden > 0 {
		n.Nodes = append(n.Nodes, node{Kind: "cut", Text: plural(hidden, "more part") + ": see the raw job"})
	}
	_, err := reader.Token() // the end
	return err
}

// cutText bounds a text.
func cutText(text string) string {
	if len(text) <= maxNodeText {
		return text
	}
	return strings.ToValidUTF8(text[:maxNodeText], "") + "…"
}
