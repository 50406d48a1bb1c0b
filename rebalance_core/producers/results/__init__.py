"""What producers chose and avoided, from recorded results of their sends: begin with `client`."""
