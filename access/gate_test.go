package access_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestInventedSecretsShutOutTheirSenderAlone sends invented secrets from one address, from some and from many, and then a valid one
// that the gate has not seen yet.
func TestInventedSecretsShutOutTheirSenderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		gate := access.NewGate(store)
		created := 0
		// valid sends a new token, and returns how it went.
		valid := func(from string) error {
			created++
			_, secret, err := access.Create(t.Context(), store, access.Token{Name: fmt.Sprint("t", created), Role: access.RoleViewer}, sluice.Act{By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = gate.Caller(access.WithSender(t.Context(), from), secret)
			return err
		}
		// invent sends invented secrets, and counts those that were looked up.
		invented := 0
		invent := func(from string, n int) (lookedUp int) {
			for range n {
				invented++
				_, err := gate.Caller(access.WithSender(t.Context(), from), fmt.Sprint("sluice_", invented))
				switch {
				case errors.Is(err, access.ErrUnknown):
					lookedUp++
				case !errors.Is(err, access.ErrTooMany):
					t.Fatal(err)
				}
			}
			return lookedUp
		}
		if n := invent("192.0.2.1:1000", 6000) + invent("192.0.2.1:2000", 6000); n != 100 {
			t.Errorf("%d secrets of one address were looked up, want 100", n)
		}
		if err := valid("192.0.2.1:3000"); !errors.Is(err, access.ErrTooMany) {
			t.Errorf("a token from the same address got %v", err)
		}
		if n := invent("[2001:db8::1]:1000", 80) + invent("[2001:db8::2]:1000", 80); n != 100 {
			t.Errorf("%d secrets of one /64 were looked up, want 100", n)
		}
		for _, from := range []string{"192.0.2.2:1000", "[2001:db8:0:1::1]:1000", "", "192.0.2.3"} {
			if err := valid(from); err != nil {
				t.Errorf("a token from %q got %v", from, err)
			}
		}
		for i := range 20 {
			invent(fmt.Sprintf("198.51.100.%d:1", i), 200)
		}
		if err := valid("192.0.2.4:1000"); err != nil {
			t.Errorf("a token beside 20 addresses that invent secrets got %v", err)
		}
		time.Sleep(time.Second)
		many := 0
		for i := range 5000 {
			many += invent(fmt.Sprintf("203.%d.%d.1:1", i/250, i%250), 1)
		}
		if many != 1000 {
			t.Errorf("%d secrets of many addresses were looked up, want 1000", many)
		}
		time.Sleep(time.Second)
		for range 300 { // tokens do not count
			if err := valid("192.0.2.5:1"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
