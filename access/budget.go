package access

import (
	"context"
	"net/netip"
	"time"

	"github.com/sluice-queue/sluice/internal/sender"
)

// The bounds of a [budget], per second.
const (
	// unknownFromOne is how many unknown secrets of one address a gate looks up, and unknownFromAll those of all addresses.
	unknownFromOne, unknownFromAll = 100, 1000
	// kept of unknownFromAll are for addresses of which at most few were looked up, so that a few addresses do not shut out the
	// others.
	kept, few = 200, 10
)

// budget bounds how many unknown secrets a gate looks up in a second. It has at most as many addresses as it bounds secrets.
type budget struct {
	second time.Time // its begin
	all    int
	from   map[netip.Prefix]int
}

// take reports whether another secret of an address may be looked up now, and counts it.
func (b *budget) take(from netip.Prefix, now time.Time) bool {
	if since := now.Sub(b.second); since >= time.Second || since < 0 || b.from == nil {
		*b = budget{second: now, from: make(map[netip.Prefix]int)}
	}
	most := unknownFromAll
	if b.from[from] >= few {
		most -= kept
	}
	if b.all >= most || b.from[from] >= unknownFromOne {
		return false
	}
	b.all++
	b.from[from]++
	return true
}

// giveBack uncounts a secret that was counted in some second.
func (b *budget) giveBack(from netip.Prefix, second time.Time) {
	if !second.IsZero() && second.Equal(b.second) && b.from[from] > 0 {
		b.all--
		b.from[from]--
	}
}

type senderKey struct{}

// WithSender returns a context for [Gate] that says from which address a secret comes, such as the RemoteAddr of a request. Unknown
// secrets count per address, so that one sender does not shut out the others. Senders without an address count together, and so do
// those of one /64 of IPv6.
func WithSender(ctx context.Context, address string) context.Context {
	from := sender.NetworkOf(address)
	if !from.IsValid() {
		return ctx
	}
	return context.WithValue(ctx, senderKey{}, from)
}

// senderOf returns where a secret comes from. The zero value: nobody said.
func senderOf(ctx context.Context) netip.Prefix {
	from, _ := ctx.Value(senderKey{}).(netip.Prefix)
	return from
}
