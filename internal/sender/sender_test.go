package sender_test

import (
	"testing"

	"github.com/sluice-queue/sluice/internal/sender"
)

func TestSendersAreToldApartByTheirNetworks(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32",
		"2001:db8:1:2:3::4": "2001:db8:1:2::/64", "[2001:db8:1:2::9%eth0]:80": "2001:db8:1:2::/64",
		"": "invalid Prefix", "@": "invalid Prefix", "example.com:80": "invalid Prefix",
	} {
		if got := sender.NetworkOf(address).String(); got != want {
			t.Errorf("%q is of %s, want %s", address, got, want)
		}
	}
}
