package httpapi_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// beats counts how often a stream says that it lives.
type beats struct {
	*httptest.ResponseRecorder
	count atomic.Int64
}

func (b *beats) Write(text []byte) (int, error) {
	b.count.Add(int64(bytes.Count(text, []byte(": alive\n\n"))))
	return len(text), nil
}

// TestAQuietStreamSaysThatItLives follows a topic in which nothing happens. A client gives up a stream that says
// nothing for 40 s.
func TestAQuietStreamSaysThatItLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		api := httpapi.New(store, httpapi.Options{NoLogin: true, Logger: slog.New(slog.DiscardHandler)})
		ctx, leave := context.WithCancel(t.Context())
		heard := &beats{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			api.ServeHTTP(heard, httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1"+httpapi.Root+"/stream?topics=cancelled", nil))
		}()
		for _, c := range []struct {
			after time.Duration
			beats int64
		}{{14 * time.Second, 0}, {2 * time.Second, 1}, {15 * time.Second, 2}, {28 * time.Second, 3}, {2 * time.Second, 4}} {
			time.Sleep(c.after)
			synctest.Wait()
			if got := heard.count.Load(); got != c.beats {
				t.Errorf("%s later it has said %d times that it lives, want %d", c.after, got, c.beats)
			}
		}
		leave()
		<-ended
		time.Sleep(time.Hour) // what the API keeps for a client that comes again is forgotten
	})
}
