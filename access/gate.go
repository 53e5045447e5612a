package access

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// The errors of [Gate.Caller].
var (
	// ErrUnknown: no token has the secret, or the token has ended or was revoked.
	ErrUnknown = errors.New("the token is not known, or it has ended")
	// ErrTooMany: too many unknown secrets were tried, from the same address or from all. Known ones still work while the gate
	// remembers them.
	ErrTooMany = errors.New("too many unknown tokens")
)

// Kept is how long a gate remembers a token. A revoked one works so much longer.
const Kept = 5 * time.Second

const (
	// rememberedCallers is how many secrets a gate remembers.
	rememberedCallers = 10_000
	// usedEvery is how exact UsedAt is.
	usedEvery = time.Minute
	// noteTime is the longest wait for the note that a token was used.
	noteTime = time.Second
)

// Gate finds the callers of secrets. Many goroutines may use it.
type Gate struct {
	port Store

	mu     sync.Mutex
	known  map[string]remembered // by hash, or by "name " and the name
	unsure budget
}

// remembered is a caller until a time.
type remembered struct {
	caller Caller
	until  time.Time
}

// NewGate returns a gate of a store's tokens.
func NewGate(store sluice.Store) *Gate {
	return &Gate{port: Given(store), known: make(map[string]remembered)}
}

// Caller returns the caller who has a secret. The error is an [ErrUnknown], an [ErrTooMany], or that of the store.
func (g *Gate) Caller(ctx context.Context, secret string) (Caller, error) {
	if err := sluice.CheckGiven("gate", g); err != nil {
		return Caller{}, err
	}
	if !strings.HasPrefix(secret, secretMark) || len(secret) > 200 {
		return Caller{}, ErrUnknown
	}
	hash := hashOf(secret)
	return g.find(ctx, hash, func() (Token, error) { return g.port.AccessTokenOf(ctx, hash) })
}

// Named returns the caller of a token by its name, for callers who prove their name otherwise, such as by a certificate.
// Errors are those of Caller.
func (g *Gate) Named(ctx context.Context, name string) (Caller, error) {
	if err := sluice.CheckGiven("gate", g); err != nil {
		return Caller{}, err
	}
	if sluice.CheckQueueName(name) != nil {
		return Caller{}, ErrUnknown
	}
	return g.find(ctx, "name "+name, func() (Token, error) { return g.port.AccessToken(ctx, name) })
}

// find returns the caller of a token that works, remembered by a key: its hash, or its name.
func (g *Gate) find(ctx context.Context, key string, lookUp func() (Token, error)) (Caller, error) {
	from := senderOf(ctx)
	caller, known, counted, err := g.remembers(key, from, time.Now())
	if known || err != nil {
		return caller, err
	}
	token, err := lookUp()
	if errors.Is(err, sluice.ErrNotFound) {
		g.forget(key)
		return Caller{}, ErrUnknown
	}
	if err != nil {
		return Caller{}, err
	}
	end, ended := token.endOf(key)
	if ended {
		g.forget(key)
		return Caller{}, ErrUnknown
	}
	if token.Now.Sub(token.UsedAt) > usedEvery {
		g.noteUse(ctx, token.Name)
	}
	caller = Caller{Name: "token " + token.Name, Role: token.Role, Bounds: token.Bounds}
	g.remember(key, caller, end)
	g.giveBack(from, counted)
	return caller, nil
}

// noteUse notes that a token was used. A store that cannot be written, such as one on a full disk or on a standby, shuts nobody out:
// people must be able to look.
func (g *Gate) noteUse(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	_ = g.port.UseAccessToken(ctx, name) // the next look notes it
}

// endOf returns how long a secret of the token works from now on, at most Kept. Ended: it works no more.
func (t Token) endOf(hash string) (left time.Duration, ended bool) {
	left = Kept
	ends := []time.Time{t.ExpiresAt}
	if hash == t.OldHash {
		ends = append(ends, t.OldUntil)
	}
	for _, end := range ends {
		if !end.IsZero() {
			left = min(left, end.Sub(t.Now))
		}
	}
	return left, left <= 0
}

// remembers returns a caller that the gate remembers. An unknown one counts, in the second that it returns.
func (g *Gate) remembers(hash string, from netip.Prefix, now time.Time) (caller Caller, known bool, counted time.Time, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if found, is := g.known[hash]; is {
		return found.caller, now.Before(found.until), counted, nil // a token that was known is looked up again, whatever others try
	}
	if !g.unsure.take(from, now) {
		return Caller{}, false, counted, ErrTooMany
	}
	return Caller{}, false, g.unsure.second, nil
}

// giveBack uncounts a secret that turned out to be a token's.
func (g *Gate) giveBack(from netip.Prefix, counted time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unsure.giveBack(from, counted)
}

func (g *Gate) remember(hash string, caller Caller, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= rememberedCallers {
		clear(g.known)
	}
	g.known[hash] = remembered{caller, time.Now().Add(left)}
}

func (g *Gate) forget(hash string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, hash)
}
