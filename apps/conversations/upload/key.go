// Package upload brings learnings to where they are to stay: to IPFS, under the hash of what they are, and to a chain that
// keeps the hash for good. It speaks to the nodes that it was allowed to, and to no others.
package upload

import (
	"crypto/ecdsa"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/sluice-queue/sluice/apps/conversations/reference"
)

// privateKey reads a key of an account: 64 hexadecimal digits.
func privateKey(ref string) (*ecdsa.PrivateKey, error) {
	text, err := reference.Secret(ref)
	if err != nil {
		return nil, err
	}
	key, err := crypto.HexToECDSA(strings.TrimPrefix(text, "0x"))
	if err != nil {
		return nil, fmt.Errorf("what %s refers to is not a private key of 64 hexadecimal digits", ref)
	}
	return key, nil
}
