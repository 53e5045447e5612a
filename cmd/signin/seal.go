package signin

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
)

// Key seals sessions.
type Key [32]byte

// minKey is the shortest line of a file of keys.
const minKey = 32

// ReadKeys reads keys from a file: one a line, each of at least 32 random characters. To change the key without an end
// of sessions, put the new one first, and delete the old one when its sessions have ended.
func ReadKeys(path string) ([]Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var keys []Key
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if len(line) < minKey {
			return nil, fmt.Errorf("%s: key %d has %d characters, and must have at least %d random ones; `openssl rand -base64 48` makes some", path, len(keys)+1, len(line), minKey)
		}
		derived, err := hkdf.Key(sha256.New, line, nil, "sluice sessions", len(Key{}))
		if err != nil {
			return nil, err
		}
		keys = append(keys, Key(derived))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: has no key; `openssl rand -base64 48` makes one", path)
	}
	return keys, nil
}

// sealer seals values so that only it can read and make them: AES-256 in GCM, with random nonces.
type sealer []cipher.AEAD

func newSealer(keys []Key) sealer {
	var s sealer
	for _, key := range keys {
		block, err := aes.NewCipher(key[:])
		if err != nil {
			panic(err) // a key has 32 bytes
		}
		sealing, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic(err) // the block has 16 bytes
		}
		s = append(s, sealing)
	}
	return s
}

// seal returns a value as text for a purpose. It is readable for that purpose only.
func (s sealer) seal(purpose string, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // all values are structs of this package
	}
	return base64.RawURLEncoding.EncodeToString(s[0].Seal(nil, nil, text, []byte(purpose)))
}

// open reads a sealed value, and reports whether it is one.
func (s sealer) open(purpose, sealed string, value any) bool {
	if len(sealed) > 2*maxCookie {
		return false
	}
	bytes, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return false
	}
	for _, key := range s {
		if text, err := key.Open(nil, nil, bytes, []byte(purpose)); err == nil {
			return json.Unmarshal(text, value) == nil
		}
	}
	return false
}
