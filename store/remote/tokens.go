package remote

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/wire"
)

// tokenPath is the path of a token.
func tokenPath(name, rest string) string { return "/tokens/" + url.PathEscape(name) + rest }

// CreateToken creates a token at the server, which tells its secret once; package access asks for it.
func (s *Store) CreateToken(ctx context.Context, token access.Token, act sluice.Act) (access.Token, string, error) {
	var made wire.NewToken
	body := wire.TokenBody{Name: token.Name, Role: token.Role, Queues: token.Queues, Tenants: token.Tenants, ExpiresAt: token.ExpiresAt, ReasonBody: why(act)}
	err := s.call(ctx, posting("create a token", "/tokens", &act, body, &made))
	return made.Token, made.Secret, err
}

// RotateToken gives a token a new secret at the server; package access asks for it.
func (s *Store) RotateToken(ctx context.Context, name string, overlap time.Duration, act sluice.Act) (access.Token, string, error) {
	var made wire.NewToken
	body := wire.RotateBody{Overlap: sluice.FormatDuration(overlap), ReasonBody: why(act)}
	err := s.call(ctx, posting("rotate a token", tokenPath(name, "/rotate"), &act, body, &made))
	return made.Token, made.Secret, err
}

// AccessTokens lists tokens by name.
func (s *Store) AccessTokens(ctx context.Context, after string, limit int) ([]access.Token, error) {
	q := params{"limit": {strconv.Itoa(limit)}}
	q.text("after", after)
	var answer wire.TokenList
	err := s.call(ctx, request{verb: "list tokens", path: "/tokens", query: q.values(), out: &answer})
	return answer.Tokens, err
}

// DeleteAccessToken revokes a token.
func (s *Store) DeleteAccessToken(ctx context.Context, name string, act sluice.Act) error {
	return s.call(ctx, deleting("revoke a token", tokenPath(name, ""), &act))
}

// AccessToken is an [*UnsupportedError]: the server alone reads hashes.
func (s *Store) AccessToken(context.Context, string) (access.Token, error) {
	return access.Token{}, s.theServer("To read the hash of a token")
}

// AccessTokenOf is an [*UnsupportedError]: the server finds the callers of secrets.
func (s *Store) AccessTokenOf(context.Context, string) (access.Token, error) {
	return access.Token{}, s.theServer("To find the caller of a secret")
}

// SaveAccessToken is an [*UnsupportedError]: the server makes secrets.
func (s *Store) SaveAccessToken(context.Context, access.Token, sluice.Act) (access.Token, error) {
	return access.Token{}, s.theServer("To store the hash of a token")
}

// UseAccessToken is an [*UnsupportedError]: the server notes the use of tokens.
func (s *Store) UseAccessToken(context.Context, string) error {
	return s.theServer("To note that a token was used")
}
