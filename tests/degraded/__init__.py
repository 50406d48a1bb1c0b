"""Collections damaged at random: what the audit then says is honest, and it is not mute."""
