package upload

import "github.com/ethereum/go-ethereum/common"

// Registry is the contract that keeps what was uploaded: code that takes a digest of 32 bytes and a CID behind it, refuses
// a digest that it has, keeps who sent it, and logs the CID under the digest. So a learning is recorded once, whoever sends
// how many transactions. It is written in the machine's own code, because it is short and no compiler is needed:
//
//	PUSH0 CALLDATALOAD               the digest
//	DUP1 SLOAD PUSH1 16 JUMPI        known: go to 16
//	CALLER DUP2 SSTORE               digest → sender
//	PUSH1 20 CALLDATASIZE SUB        the length of the CID
//	DUP1 PUSH1 20 PUSH0 CALLDATACOPY
//	PUSH0 LOG1 STOP                  the CID, with the digest as its topic
//	JUMPDEST PUSH0 PUSH0 REVERT      at 16
var Registry = common.FromHex("5f358054601657338155602036038060205f375fa1005b5f5ffd")

// RegistryInit deploys Registry: it copies the code that follows it.
var RegistryInit = append(common.FromHex("601a8060095f395ff3"), Registry...)
