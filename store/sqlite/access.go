package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
)

var _ access.Store = (*Store)(nil)

//go:embed sql/access_token.sql
var accessTokenSQL string

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
	err := s.read(ctx, "list tokens", func(tx runner) (err error) {
		out, err = list(tx, scanAccessToken, accessTokensSQL, after, limit)
		return err
	})
	return out, err
}

func scanAccessToken(rows *sql.Rows) (access.Token, error) {
	t := access.Token{Now: time.UnixMicro(now()).UTC()}
	var old *string
	var used *int64
	var changed int64
	var terms string
	if err := rows.Scan(&t.Name, &t.Hash, &old, &terms, &used, &t.Version, &changed, &t.ChangedBy, &t.Reason); err != nil {
		return t, err
	}
	if old != nil {
		t.OldHash = *old
	}
	t.UsedAt, t.ChangedAt = timeOf(used), timeOf(&changed)
	return t, t.ReadTerms(terms)
}

// SaveAccessToken stores a token and its audit entry.
func (s *Store) SaveAccessToken(ctx context.Context, token access.Token, act sluice.Act) (access.Token, error) {
	return save(ctx, s, "save token", saving.AccessTokens, token, act, home[access.Token]{
		stored: func(tx runner) ([]access.Token, error) { return list(tx, scanAccessToken, accessTokenSQL, token.Name) },
		store: func(tx runner, next access.Token) error {
			terms, err := next.Terms()
			if err != nil {
				return err
			}
			var old *string
			if next.OldHash != "" {
				old = &next.OldHash
			}
			_, err = tx.exec(accessTokenSaveSQL, next.Name, next.Hash, old, terms, next.Version, micros(next.ChangedAt), next.ChangedBy, next.Reason)
			return err
		},
	})
}

// DeleteAccessToken deletes a token and audits this.
func (s *Store) DeleteAccessToken(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, "delete token", audit.ObjectToken, name, act, deleting(accessTokenDeleteSQL, name))
}

// UseAccessToken notes that a token was used.
func (s *Store) UseAccessToken(ctx context.Context, name string) error {
	return s.write(ctx, "note use of token", func(tx runner, _ bool) error {
		_, err := tx.exec(accessTokenUseSQL, name, now())
		return err
	})
}
