package remote_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/store/remote"
)

// TestSharedLimitsAreClosedByOneAct loses the first answer to a worker that closes what a rate-limited job shares.
func TestSharedLimitsAreClosedByOneAct(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		client := &http.Client{Transport: said(func(r *http.Request) (int, string) {
			if strings.HasSuffix(r.URL.Path, "/whoami") {
				return http.StatusOK, `{"name":"local"}`
			}
			if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) == 1 {
				return http.StatusBadGateway, ""
			}
			return http.StatusOK, `{"done":true}`
		})}
		store, err := remote.Open(t.Context(), "http://127.0.0.1", remote.Options{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		claim := &sluice.Claim{Job: sluice.Job{ID: sluice.NewID(), Queue: "mail"}, Token: sluice.NewToken()}
		if err := pause.Shared(t.Context(), store, claim, sluice.Settings{}, time.Hour, sluice.Act{By: "h:1:a"}); err != nil {
			t.Fatal(err)
		}
		if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
			t.Errorf("the requests have the keys %q, want one key twice", keys)
		}
	})
}
