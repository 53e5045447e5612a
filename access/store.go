package access

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of tokens. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// AccessToken returns a token. An unknown name is an ErrNotFound.
	AccessToken(ctx context.Context, name string) (Token, error)
	// AccessTokenOf returns the token whose Hash or OldHash is a hash, whether it has ended or not. An unknown hash is
	// an ErrNotFound.
	AccessTokenOf(ctx context.Context, hash string) (Token, error)
	// AccessTokens lists tokens by name, after a name.
	AccessTokens(ctx context.Context, after string, limit int) ([]Token, error)
	// SaveAccessToken stores a token with an audit entry. Version must be the stored token's, or 0 for a new one, else
	// the error is an ErrConflict. A save keeps UsedAt.
	SaveAccessToken(ctx context.Context, token Token, act sluice.Act) (Token, error)
	// DeleteAccessToken deletes a token, with an audit entry. An unknown name is an ErrNotFound.
	DeleteAccessToken(ctx context.Context, name string, act sluice.Act) error
	// UseAccessToken notes that a token was used now. An unknown name is no error.
	UseAccessToken(ctx context.Context, name string) error
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without tokens, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no tokens")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without tokens. Every method returns the reason.
type missing struct{ err error }

func (m missing) AccessToken(context.Context, string) (Token, error)   { return Token{}, m.err }
func (m missing) AccessTokenOf(context.Context, string) (Token, error) { return Token{}, m.err }

func (m missing) AccessTokens(context.Context, string, int) ([]Token, error) { return nil, m.err }

func (m missing) SaveAccessToken(context.Context, Token, sluice.Act) (Token, error) {
	return Token{}, m.err
}
func (m missing) DeleteAccessToken(context.Context, string, sluice.Act) error { return m.err }
func (m missing) UseAccessToken(context.Context, string) error                { return m.err }

// Stored returns the token as its next version, stored at an instant of the store's clock.
func (t Token) Stored(stored *Token, at time.Time, act sluice.Act) Token {
	t.Version++
	t.ChangedAt, t.ChangedBy, t.Reason = at.UTC(), act.By, act.Reason
	if t.UsedAt = (time.Time{}); stored != nil {
		t.UsedAt = stored.UsedAt
	}
	t.Now = at.UTC()
	return t
}
