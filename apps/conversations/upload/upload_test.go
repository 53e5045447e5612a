package upload_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/apps/conversations/devnet"
	"github.com/sluice-queue/sluice/apps/conversations/upload"
)

func TestKeyThatIsNoneIsNotQuoted(t *testing.T) {
	t.Setenv("UPLOAD_TEST_BAD", "not-a-key-but-secret")
	approved, err := upload.Approve("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = upload.DialChain(t.Context(), approved.Client(), "http://127.0.0.1:1", "0x00", "env:UPLOAD_TEST_BAD")
	if err == nil || strings.Contains(err.Error(), "not-a-key") {
		t.Errorf("error %v", err)
	}
}

// TestOnlyApprovedHostsAreDialed checks endpoints against a list of approved ones.
func TestOnlyApprovedHostsAreDialed(t *testing.T) {
	t.Parallel()
	approved, err := upload.Approve("http://127.0.0.1:5001", "https://rpc.example")
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, good := range map[string]bool{
		"http://127.0.0.1:5001": true, "http://127.0.0.1:5001/x": true, "https://rpc.example": true, "https://rpc.example:443/": true,
		"http://127.0.0.1:5002": false, "http://rpc.example": false, "http://127.0.0.1:5001@evil.example": false, "gopher://127.0.0.1:5001": false, "": false,
	} {
		if err := approved.Check(endpoint); (err == nil) != good {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	response, err := approved.Client().Get("http://127.0.0.1:9/")
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, upload.ErrNotApproved) {
		t.Errorf("dialed: %v", err)
	}
}

// TestRegistryRecordsADigestOnce runs the contract on a real EVM.
func TestRegistryRecordsADigestOnce(t *testing.T) {
	t.Parallel()
	node, err := devnet.StartChain(t.Context(), t.TempDir(), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Stop() }()
	chain, err := upload.DialChain(t.Context(), http.DefaultClient, node.URL, node.Contract, node.KeyRef)
	if err != nil {
		t.Fatal(err)
	}
	defer chain.Close()
	id, err := upload.CIDOf([]byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if known, err := chain.Known(t.Context(), id); err != nil || known {
		t.Fatalf("known before: %t, %v", known, err)
	}
	fees, err := chain.Fees(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	raw, hash, err := chain.Sign(id, fees, fees.Nonce)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // a worker may send a transaction again
		if err := chain.Send(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
		if block, err := chain.Await(t.Context(), raw, hash, fees.Nonce); err != nil || block == 0 {
			t.Fatalf("block %d, %v", block, err)
		}
	}
	if known, err := chain.Known(t.Context(), id); err != nil || !known {
		t.Errorf("known: %t, %v", known, err)
	}
	if _, err := chain.Fees(t.Context(), id); err == nil {
		t.Error("the registry takes a digest twice")
	}
	second, hash, err := chain.Sign(id, fees, fees.Nonce+1)
	if err != nil {
		t.Fatal(err)
	}
	if err := chain.Send(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Await(t.Context(), second, hash, fees.Nonce+1); !errors.Is(err, upload.ErrReverted) {
		t.Errorf("the second transaction: %v", err)
	}
	if _, err := chain.Confirmed(t.Context(), [32]byte{1}, fees.Nonce); !errors.Is(err, upload.ErrReplaced) {
		t.Errorf("a transaction whose nonce was used: %v", err)
	}
	recorded, err := chain.Recorded(t.Context())
	if err != nil || len(recorded) != 1 || recorded[id.String()] != 1 {
		t.Errorf("recorded %v, %v", recorded, err)
	}
}
