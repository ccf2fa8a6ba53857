package rpc

import "bytes"

// Role is what a peer is.
type Role uint8

const (
	RoleGateway   Role = 1
	RoleSidecar   Role = 2
	RoleContainer Role = 3
)

// Features are bits that both sides must offer before either uses them.
type Features uint64

const (
	FeatureLZ4    Features = 1
	FeatureStages Features = 2 // of sidecars and containers: stages of pipelines; of both hops: StatusDropped
	FeatureHost   Features = 4 // of sidecars and containers: versions that are loaded and unloaded on demand; of gateways: they ask for it
	// FeatureTensors: input type tensors, the element types that only it has, strings with a shape.
	FeatureTensors Features = 8
	// FeatureParts: of containers, queries side by side (Announcement.Concurrency), which CANCEL
	// ends; of both hops, answers in parts where AskParts asks for them.
	FeatureParts Features = 16
	FeatureApps  Features = 32 // of gateways: they say which app asks; of sidecars: apps share by weight
	// FeatureMemory: of containers, large frames in memory that they share with a sidecar on their machine.
	FeatureMemory Features = 64
)

// Minor is the minor version of this implementation.
const Minor = 0

// Hello opens a connection, from both sides.
type Hello struct {
	Minor    uint8
	Role     Role
	Features Features
	MaxFrame uint32
	Name     string
	Token    []byte
	Software string
}

const helloMagic = "TPS2"

const (
	helloName     = 1
	helloToken    = 2
	helloSoftware = 3
)

// AppendHello appends the body of a HELLO frame.
func AppendHello(b []byte, h Hello) []byte {
	b = append(b, helloMagic...)
	b = append(b, h.Minor, uint8(h.Role), 0, 0)
	b = appendU64(b, uint64(h.Features))
	b = appendU32(b, h.MaxFrame)
	if h.Name != "" {
		b = appendFieldString(b, helloName, h.Name)
	}
	if len(h.Token) > 0 {
		b = appendField(b, helloToken, h.Token)
	}
	if h.Software != "" {
		b = appendFieldString(b, helloSoftware, h.Software)
	}
	return b
}

// ParseHello reads the body of a HELLO frame; nothing in it points into body.
func ParseHello(body []byte) (Hello, error) {
	c := cursor{frame: "HELLO", b: body}
	if magic := c.take(4, "magic"); c.err == nil && string(magic) != helloMagic {
		c.fail("magic", "is not TPS2: the peer does not speak this protocol")
	}
	h := Hello{Minor: c.u8("minor version"), Role: Role(c.u8("role"))}
	c.u16("reserved")
	h.Features = Features(c.u64("features"))
	h.MaxFrame = c.u32("max frame")
	if c.err == nil && h.MaxFrame < MinMaxFrame {
		c.fail("max frame", "is below 65536")
	}
	for c.more() {
		switch tag, value := c.field(); tag {
		case helloName:
			h.Name = string(value.rest())
		case helloToken:
			h.Token = bytes.Clone(value.rest())
		case helloSoftware:
			h.Software = string(value.rest())
		}
	}
	return h, c.err
}
