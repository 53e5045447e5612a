// Package reference reads secrets by their references, so that the secrets themselves are in no payload, table or log.
package reference

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret reads a secret by its reference: env:NAME or file:PATH. The reference may be stored and logged; the secret may not,
// and no error tells any of it.
func Secret(ref string) (string, error) {
	kind, place, _ := strings.Cut(ref, ":")
	var text string
	switch kind {
	case "env":
		text = os.Getenv(place)
	case "file":
		content, err := os.ReadFile(place)
		if err != nil {
			return "", fmt.Errorf("read the secret of %s: %w", ref, err)
		}
		text = string(content)
	default:
		return "", errors.New("a reference to a secret is env:NAME or file:PATH")
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("there is no secret in %s", ref)
	}
	return text, nil
}
