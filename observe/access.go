package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

func (s *store) AccessToken(ctx context.Context, name string) (access.Token, error) {
	return do(ctx, s, "access_token", "", func(ctx context.Context) (access.Token, error) { return s.tokens.AccessToken(ctx, name) })
}

func (s *store) AccessTokenOf(ctx context.Context, hash string) (access.Token, error) {
	return do(ctx, s, "access_token_of", "", func(ctx context.Context) (access.Token, error) { return s.tokens.AccessTokenOf(ctx, hash) })
}

func (s *store) AccessTokens(ctx context.Context, after string, limit int) ([]access.Token, error) {
	return do(ctx, s, "access_tokens", "", func(ctx context.Context) ([]access.Token, error) { return s.tokens.AccessTokens(ctx, after, limit) })
}

func (s *store) SaveAccessToken(ctx context.Context, token access.Token, act sluice.Act) (access.Token, error) {
	return do(ctx, s, "save_access_token", "", func(ctx context.Context) (access.Token, error) {
		return s.tokens.SaveAccessToken(ctx, token, act)
	})
}

func (s *store) DeleteAccessToken(ctx context.Context, name string, act sluice.Act) error {
	_, err := do(ctx, s, "delete_access_token", "", func(ctx context.Context) (none, error) {
		return none{}, s.tokens.DeleteAccessToken(ctx, name, act)
	})
	return err
}

func (s *store) UseAccessToken(ctx context.Context, name string) error {
	_, err := do(ctx, s, "use_access_token", "", func(ctx context.Context) (none, error) {
		return none{}, s.tokens.UseAccessToken(ctx, name)
	})
	return err
}
