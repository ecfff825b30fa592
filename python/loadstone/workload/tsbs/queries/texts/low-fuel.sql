SELECT {tag_as:t.name}, {tag_as:t.driver}, d.* 
		FROM tags t INNER JOIN LATERAL 
			(SELECT fuel_state 
			FROM diagnostics d 
			WHERE d.tags_id=t.id 
			ORDER BY time DESC LIMIT 1) d ON true 
		WHERE {tag:t.name} IS NOT NULL
		AND d.fuel_state < 0.1 
		AND {tag:t.fleet} = '{fleet}'
