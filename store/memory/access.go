package memory

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
)

var _ access.Store = (*Store)(nil)

// AccessToken returns a token.
func (s *Store) AccessToken(ctx context.Context, name string) (access.Token, error) {
	return s.tokenThat(ctx, func(t access.Token) bool { return t.Name == name })
}

// AccessTokenOf returns the token with a hash.
func (s *Store) AccessTokenOf(ctx context.Context, hash string) (access.Token, error) {
	return s.tokenThat(ctx, func(t access.Token) bool { return t.Hash == hash || t.OldHash == hash })
}

func (s *Store) tokenThat(ctx context.Context, is func(access.Token) bool) (access.Token, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return access.Token{}, err
	}
	defer leave()
	for _, token := range s.tokens {
		if is(token) {
			token.Now = s.now()
			return token, nil
		}
	}
	return access.Token{}, sluice.ErrNotFound
}

// AccessTokens lists tokens by name.
func (s *Store) AccessTokens(ctx context.Context, after string, limit int) ([]access.Token, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []access.Token
	for _, token := range byName(s.tokens, func(t access.Token) string { return t.Name }) {
		if token.Name > after {
			token.Now = s.now()
			out = append(out, token)
		}
	}
	return out[:min(len(out), limit)], nil
}

// SaveAccessToken stores a token.
func (s *Store) SaveAccessToken(ctx context.Context, token access.Token, act sluice.Act) (access.Token, error) {
	return save(ctx, s, saving.AccessTokens, token, act, in(s.tokens, token.Name))
}

// DeleteAccessToken deletes a token.
func (s *Store) DeleteAccessToken(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, audit.ObjectToken, name, act, func() error { return remove(s.tokens, name) })
}

// UseAccessToken notes that a token was used.
func (s *Store) UseAccessToken(ctx context.Context, name string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if token, known := s.tokens[name]; known {
		token.UsedAt = s.now()
		s.tokens[name] = token
	}
	return nil
}
