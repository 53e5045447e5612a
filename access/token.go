package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Token lets a program call the HTTP API. The store keeps a hash of its secret only.
type Token struct {
	// Name names the token, by the rule of queue names. The audit shows it.
	Name string `json:"name"`
	// Role names the rights of the token, and Bounds the queues and tenants that it knows.
	Role Role `json:"role"`
	Bounds
	// ExpiresAt is when the token ends. Zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// OldUntil is when the secret before the last rotation ends. Zero: there is none.
	OldUntil time.Time `json:"old_until,omitzero"`
	// UsedAt is about when the token was used last. Zero: never.
	UsedAt time.Time `json:"used_at,omitzero"`
	// Version counts the changes. 0: the token is not stored. ChangedAt, ChangedBy and Reason describe the last change.
	Version   int64     `json:"version"`
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`

	// Hash is the SHA-256 of the secret, and OldHash that of the secret before, in hexadecimal digits.
	Hash    string `json:"-"`
	OldHash string `json:"-"`
	// Now is the store's clock when the store read the token.
	Now time.Time `json:"-"`
}

// terms are the parts of a token that stores keep as JSON, and that the audit shows.
type terms struct {
	Role Role `json:"role"`
	Bounds
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	OldUntil  time.Time `json:"old_until,omitzero"`
}

// Terms returns role, bounds and times of the token, as stores keep them.
func (t Token) Terms() (string, error) {
	text, err := json.Marshal(terms{t.Role, t.Bounds, t.ExpiresAt, t.OldUntil})
	return string(text), err
}

// ForAudit returns the token as the audit keeps it. A changed secret shows by the beginning of its hash.
func (t Token) ForAudit() any {
	return struct {
		terms
		Secret string `json:"secret"`
	}{terms{t.Role, t.Bounds, t.ExpiresAt, t.OldUntil}, t.Hash[:min(8, len(t.Hash))]}
}

// ReadTerms sets role, bounds and times to those of Terms.
func (t *Token) ReadTerms(text string) error {
	var read terms
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return fmt.Errorf("the terms of token %q are not readable: %w", t.Name, err)
	}
	t.Role, t.Bounds, t.ExpiresAt, t.OldUntil = read.Role, read.Bounds, read.ExpiresAt, read.OldUntil
	return nil
}

// check returns the rule that the token breaks.
func (t Token) check() error {
	if err := sluice.CheckQueueName(t.Name); err != nil || sluice.IsGroup(t.Name) {
		return feature.Invalid("name", fmt.Sprintf("%.60q must have 1 to 64 letters, digits and . _ : -, the first a letter or a digit", t.Name))
	}
	if err := t.Role.Check(); err != nil {
		return err
	}
	if err := feature.CheckInstant("expires_at", t.ExpiresAt); err != nil {
		return err
	}
	bounds := t.Bounds
	return bounds.Check()
}

// secretMark begins each secret, so that people and scanners recognise it.
const secretMark = "sluice_"

// secretBytes is the length of a secret: 256 bits.
const secretBytes = 32

// newSecret returns a random secret.
func newSecret() string {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // it never fails
	return secretMark + base64.RawURLEncoding.EncodeToString(random)
}

// hashOf returns the hash of a secret. A secret has 256 random bits, so a plain hash cannot be guessed.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// maker is a store that makes the secrets by itself, such as one behind a server.
type maker interface {
	CreateToken(ctx context.Context, token Token, act sluice.Act) (Token, string, error)
	RotateToken(ctx context.Context, name string, overlap time.Duration, act sluice.Act) (Token, string, error)
}

// ErrTaken says that a token of the name exists already. It is a [sluice.ErrConflict].
var ErrTaken error = takenError{}

type takenError struct{}

// Error says what is wrong.
func (takenError) Error() string { return "a token of that name exists already" }

// Is makes it a [sluice.ErrConflict].
func (takenError) Is(target error) bool { return target == sluice.ErrConflict }

// Create stores a new token, and returns its secret, which nobody can read again. A taken name is an [ErrTaken].
func Create(ctx context.Context, store sluice.Store, token Token, act sluice.Act) (_ Token, secret string, err error) {
	port, err := ready(store, act)
	if err != nil {
		return token, "", err
	}
	token.ExpiresAt = feature.Instant(token.ExpiresAt)
	if err := token.check(); err != nil {
		return token, "", err
	}
	if other, is := sluice.StoreAs[maker](store); is {
		return other.CreateToken(ctx, token, act)
	}
	secret = newSecret()
	token.Hash, token.OldHash, token.OldUntil, token.UsedAt, token.Version = hashOf(secret), "", time.Time{}, time.Time{}, 0
	saved, err := saveSecret(ctx, port, token, act)
	if err != nil {
		return token, "", fmt.Errorf("create token %q: %w", token.Name, err)
	}
	return saved, secret, nil
}

// MaxOverlap is the longest time for which an old secret works beside the new one.
const MaxOverlap = 30 * 24 * time.Hour

// Rotate gives a token a new secret. The old one works for the overlap longer, at most 30 days. An unknown name is a
// [sluice.ErrNotFound].
func Rotate(ctx context.Context, store sluice.Store, name string, overlap time.Duration, act sluice.Act) (_ Token, secret string, err error) {
	port, err := ready(store, act)
	if err != nil {
		return Token{}, "", err
	}
	if overlap < 0 || overlap > MaxOverlap {
		return Token{}, "", feature.Invalid("overlap", fmt.Sprintf("%s must be from 0s to %s", overlap, sluice.FormatDuration(MaxOverlap)))
	}
	if other, is := sluice.StoreAs[maker](store); is {
		return other.RotateToken(ctx, name, overlap, act)
	}
	token, err := port.AccessToken(ctx, name)
	if err != nil {
		return Token{}, "", fmt.Errorf("rotate token %q: %w", name, err)
	}
	secret = newSecret()
	token.OldHash, token.OldUntil = "", time.Time{}
	if overlap > 0 {
		token.OldHash, token.OldUntil = token.Hash, feature.Instant(token.Now.Add(overlap))
	}
	token.Hash = hashOf(secret)
	if token, err = saveSecret(ctx, port, token, act); err != nil {
		return Token{}, "", fmt.Errorf("rotate token %q: %w", name, err)
	}
	return token, secret, nil
}

// saveSecret stores a token with a new secret. If the act was done before, the store has another secret.
func saveSecret(ctx context.Context, port Store, token Token, act sluice.Act) (Token, error) {
	saved, err := port.SaveAccessToken(ctx, token, act)
	if errors.Is(err, sluice.ErrConflict) && token.Version == 0 {
		return saved, ErrTaken
	}
	if err == nil && saved.Hash != token.Hash {
		err = fmt.Errorf("the act was done before, and its secret is shown once; rotate the token for another: %w", sluice.ErrConflict)
	}
	return saved, err
}

// Revoke deletes a token. Callers with it are refused within [Kept]. An unknown name is a [sluice.ErrNotFound].
func Revoke(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	port, err := ready(store, act)
	if err != nil {
		return err
	}
	if err := port.DeleteAccessToken(ctx, name, act); err != nil {
		return fmt.Errorf("revoke token %q: %w", name, err)
	}
	return nil
}

// ready returns the port of a store for an act.
func ready(store sluice.Store, act sluice.Act) (Store, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return nil, err
	}
	return Given(store), act.Check()
}

// Tokens lists the tokens, by name, after a name. Limit is 1 to 10,000; 0 is 100.
func Tokens(ctx context.Context, store sluice.Store, after string, limit int) ([]Token, error) {
	limit, err := feature.PageSize(limit)
	if err != nil {
		return nil, err
	}
	return Given(store).AccessTokens(ctx, after, limit)
}
