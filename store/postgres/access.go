package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
)

var _ access.Store = (*Store)(nil)

//go:embed sql/access_token.sql
var accessTokenSQL string

//go:embed sql/access_token_lock.sql
var accessTokenLockSQL string

//go:embed sql/access_token_of.sql
var accessTokenOfSQL string

//go:embed sql/access_tokens.sql
var accessTokensSQL string

//go:embed sql/access_token_save.sql
var accessTokenSaveSQL string

//go:embed sql/access_token_delete.sql
var accessTokenDeleteSQL string

//go:embed sql/access_token_use.sql
var accessTokenUseSQL string

// AccessToken returns a token.
func (s *Store) AccessToken(ctx context.Context, name string) (access.Token, error) {
	return lookUp(ctx, s, "look up token", scanAccessToken, accessTokenSQL, name)
}

// AccessTokenOf returns the token with a hash.
func (s *Store) AccessTokenOf(ctx context.Context, hash string) (access.Token, error) {
	return lookUp(ctx, s, "look up token", scanAccessToken, accessTokenOfSQL, hash)
}

// AccessTokens lists tokens by name.
func (s *Store) AccessTokens(ctx context.Context, after string, limit int) ([]access.Token, error) {
	var out []access.Token
	err := s.call(ctx, "list tokens", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanAccessToken, accessTokensSQL, after, limit)
		return err
	})
	return out, err
}

func scanAccessToken(row pgx.CollectableRow) (t access.Token, err error) {
	var old *string
	var used *time.Time
	var terms string
	if err := row.Scan(&t.Name, &t.Hash, &old, &terms, &used, &t.Version, &t.ChangedAt, &t.ChangedBy, &t.Reason, &t.Now); err != nil {
		return t, err
	}
	if old != nil {
		t.OldHash = *old
	}
	if used != nil {
		t.UsedAt = used.UTC()
	}
	t.ChangedAt, t.Now = t.ChangedAt.UTC(), t.Now.UTC()
	return t, t.ReadTerms(terms)
}

// SaveAccessToken stores a token and its audit entry.
func (s *Store) SaveAccessToken(ctx context.Context, token access.Token, act sluice.Act) (access.Token, error) {
	act = saving.Named(act)
	var next access.Token
	kind := saving.AccessTokens
	kind.Next = func(access.Token, *access.Token, time.Time, sluice.Act) access.Token { return next }
	return save(ctx, s, "save token", kind, token, act, home[access.Token]{
		always: true,
		stored: func(ctx context.Context, db rowsQuerier) ([]access.Token, error) {
			return list(ctx, db, scanAccessToken, accessTokenLockSQL, token.Name)
		},
		store: func(ctx context.Context, tx pgx.Tx, stored *access.Token) (at time.Time, err error) {
			if stored != nil {
				at = stored.Now
			} else if at, err = readNow(ctx, tx); err != nil {
				return at, err
			}
			next = token.Stored(stored, at, act)
			terms, err := next.Terms()
			if err != nil {
				return at, err
			}
			_, err = savedRow(ctx, tx, accessTokenSaveSQL, next.Name, next.Hash, nullText(next.OldHash), terms, next.Version, next.ChangedAt, next.ChangedBy, next.Reason)
			return at, err
		},
	})
}

// DeleteAccessToken deletes a token and audits this.
func (s *Store) DeleteAccessToken(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, "delete token", audit.ObjectToken, name, act, accessTokenDeleteSQL, name, act.By, act.Reason, nullUUID(act.ID))
}

// UseAccessToken notes that a token was used.
func (s *Store) UseAccessToken(ctx context.Context, name string) error {
	return s.call(ctx, "note use of token", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, accessTokenUseSQL, name)
	})
}
