// Package upload brings learnings to where they are to stay: to IPFS, under the hash of what they are, and to a chain that
// keeps the hash for good. It speaks to the nodes that it was allowed to, and to no others.
package upload

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
)

// Secret reads a secret by its reference: env:NAME or file:PATH. The reference may be stored and logged; the secret may not,
// and no error tells any of it (C-36).
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

// privateKey reads a key of an account: 64 hexadecimal digits.
func privateKey(ref string) (*ecdsa.PrivateKey, error) {
	text, err := Secret(ref)
	if err != nil {
		return nil, err
	}
	key, err := crypto.HexToECDSA(strings.TrimPrefix(text, "0x"))
	if err != nil {
		return nil, fmt.Errorf("what %s refers to is not a private key of 64 hexadecimal digits", ref)
	}
	return key, nil
}
