package safe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

func (s store) AccessToken(ctx context.Context, name string) (_ access.Token, err error) {
	defer s.caught(&err)
	return s.tokens.AccessToken(ctx, name)
}

func (s store) AccessTokenOf(ctx context.Context, hash string) (_ access.Token, err error) {
	defer s.caught(&err)
	return s.tokens.AccessTokenOf(ctx, hash)
}

func (s store) AccessTokens(ctx context.Context, after string, limit int) (_ []access.Token, err error) {
	defer s.caught(&err)
	return s.tokens.AccessTokens(ctx, after, limit)
}

func (s store) SaveAccessToken(ctx context.Context, token access.Token, act sluice.Act) (_ access.Token, err error) {
	defer s.caught(&err)
	return s.tokens.SaveAccessToken(ctx, token, act)
}

func (s store) DeleteAccessToken(ctx context.Context, name string, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.tokens.DeleteAccessToken(ctx, name, act)
}

func (s store) UseAccessToken(ctx context.Context, name string) (err error) {
	defer s.caught(&err)
	return s.tokens.UseAccessToken(ctx, name)
}
