// Package sender tells senders of requests apart by their networks, so that one of them cannot take what all share.
package sender

import "net/netip"

// NetworkOf returns the network of an address, which may have a port: of IPv4 the address alone, of IPv6 the /64. The zero
// value: the text is no address.
func NetworkOf(address string) netip.Prefix {
	at, err := netip.ParseAddr(address)
	if err != nil {
		with, err := netip.ParseAddrPort(address)
		if err != nil {
			return netip.Prefix{}
		}
		at = with.Addr()
	}
	bits := 64
	if at = at.Unmap().WithZone(""); at.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(at, bits).Masked()
}
