package upload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/ipfs/boxo/path"
	"github.com/ipfs/go-cid"
	"github.com/ipfs/kubo/client/rpc"
	"github.com/ipfs/kubo/core/coreiface/options"
	"github.com/multiformats/go-multihash"
)

// CIDOf gives the name of a content: a CID of version 1, of the raw bytes, by SHA-256. It is known before anybody stores the
// content, and whoever gets it can check it.
func CIDOf(content []byte) (cid.Cid, error) {
	return cid.V1Builder{Codec: cid.Raw, MhType: multihash.SHA2_256}.Sum(content)
}

// PutIPFS stores a content at a node, pinned, and gives its CID. The node's word is not taken for it. Doing it twice is
// doing it once.
func PutIPFS(ctx context.Context, client *http.Client, endpoint string, content []byte) (cid.Cid, error) {
	want, err := CIDOf(content)
	if err != nil {
		return cid.Undef, err
	}
	node, err := rpc.NewURLApiWithClient(endpoint, client)
	if err != nil {
		return cid.Undef, fmt.Errorf("IPFS at %s: %w", endpoint, err)
	}
	stat, err := node.Block().Put(ctx, bytes.NewReader(content), options.Block.CidCodec("raw"), options.Block.Hash(multihash.SHA2_256, -1), options.Block.Pin(true))
	if err != nil {
		return cid.Undef, fmt.Errorf("store in IPFS at %s: %w", endpoint, err)
	}
	if got := stat.Path().RootCid(); !got.Equals(want) {
		return cid.Undef, fmt.Errorf("the IPFS node at %s stored something else: %s instead of %s", endpoint, got, want)
	}
	return want, nil
}

// maxContent bounds what is read from a node.
const maxContent = 1 << 20

// GetIPFS reads a content from a node.
func GetIPFS(ctx context.Context, client *http.Client, endpoint string, id cid.Cid) ([]byte, error) {
	node, err := rpc.NewURLApiWithClient(endpoint, client)
	if err != nil {
		return nil, fmt.Errorf("IPFS at %s: %w", endpoint, err)
	}
	content, err := node.Block().Get(ctx, path.FromCid(id))
	if err != nil {
		return nil, fmt.Errorf("read %s from IPFS at %s: %w", id, endpoint, err)
	}
	return io.ReadAll(io.LimitReader(content, maxContent))
}
